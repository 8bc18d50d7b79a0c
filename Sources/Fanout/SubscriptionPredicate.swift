package import PredicateLanguage
package import RelayModel

extension SubscriptionQuery {
    /// The condition as a predicate, whichever form it was written in; without one, every record.
    ///
    /// Saving calls it to refuse what cannot be meant and to fill ``canonical``; the follower calls
    /// it again for what was saved. A text of NSPredicate is read whole, not only as far as
    /// CloudKit's CKQuery allows: what goes further is our extension.
    ///
    /// - Throws: `PredicateError`; its path, or its offset, lies within ``source``.
    package func recordPredicate() throws(PredicateError) -> RecordPredicate {
        guard let form else { return .everyRecord }
        return try RecordPredicate.parse(
            source, dialect: form.dialect, arguments: try argumentValues(of: form))
    }

    private func argumentValues(
        of form: PredicateForm
    ) throws(PredicateError) -> [FieldValue] {
        var values: [FieldValue] = []
        for (index, argument) in arguments.enumerated() {
            let path = "\(form.rawValue)Arguments[\(index)]"
            do {
                values.append(try FieldValue(notation: argument, path: path))
            } catch {
                throw PredicateError(.parse, error.reason, path: error.path)
            }
        }
        return values
    }
}

extension PredicateForm {
    /// The dialect in which a condition of this form is written.
    package var dialect: PredicateDialect {
        switch self {
        case .filterBy: .filterBy
        case .predicate: .nspredicate
        case .rql: .rql
        case .where: .where
        }
    }
}
