package import PredicateLanguage
package import RelayModel

extension RecordPredicate {
    /// Reads the condition of a query subscription in the form in which the client wrote it.
    ///
    /// A query without a condition means every record (CloudKit: no filter).
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` at the first place that does not fit.
    package init(reading query: SubscriptionQuery) throws(PredicateError) {
        guard let form = query.form else {
            self = .everyRecord
            return
        }
        var arguments: [FieldValue] = []
        for (index, argument) in query.arguments.enumerated() {
            do throws(JSONContractError) {
                arguments.append(
                    try FieldValue(notation: argument, path: "\(form.rawValue)Arguments[\(index)]"))
            } catch {
                throw PredicateError(.parse, error.description)
            }
        }
        self = try RecordPredicate.parse(
            query.source, dialect: form.dialect, arguments: arguments)
    }

    /// Reads the condition of a saved query subscription from its canonical text.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if the text is not canonical, which saving has
    ///   ruled out.
    package init(activating query: SubscriptionQuery) throws(PredicateError) {
        self = try RecordPredicate.parse(.string(query.canonical), dialect: .nspredicate)
    }
}

extension PredicateForm {
    var dialect: PredicateDialect {
        switch self {
        case .filterBy: .filterBy
        case .predicate: .nspredicate
        case .rql: .rql
        case .where: .where
        }
    }
}
