package import PredicateLanguage
package import RelayModel

extension SubscriptionQuery {
    /// Returns the condition as a predicate, from any form; without a condition, every record
    /// matches.
    ///
    /// It is called when a subscription is saved, to refuse an invalid condition and to fill
    /// ``canonical``, and again by the follower for the saved subscription. The whole language of
    /// NSPredicate is accepted; what goes beyond CloudKit's CKQuery is our extension.
    ///
    /// - Parameter owner: The owner that zones in the subscriber's database have implicitly.
    ///
    /// - Returns: The predicate in terms of the records in the subscriber's database.
    ///
    /// - Throws: `PredicateError`; its path or offset is relative to ``source``.
    package func recordPredicate(
        implying owner: UserID? = nil
    ) throws(PredicateError) -> RecordPredicate {
        try written().meant(implying: owner)
    }

    private func written() throws(PredicateError) -> RecordPredicate {
        guard let form else { return .everyRecord }
        let arguments = try argumentValues(of: form)
        if form == .rql, case .string(let text) = source {
            // Conditions that Flexible Sync refuses in a subscription are refused here too.
            let query = try RealmQuery(parsing: text, arguments: arguments)
            try query.checkSubscription()
            return query.predicate
        }
        return try RecordPredicate.parse(source, dialect: form.dialect, arguments: arguments)
    }

    /// Checks a condition in RQL against the types of fields, and refuses what Flexible Sync
    /// refuses, such as the `@count` of a text.
    ///
    /// Only conditions that come in are checked, so that those saved before this check stay
    /// readable.
    ///
    /// - Throws: `PredicateError`; its offset is relative to ``source``.
    package func checkFlexibleSync(schema: RecordSchema) throws(PredicateError) {
        guard form == .rql, case .string(let text) = source else { return }
        let query = try RealmQuery(parsing: text, arguments: try argumentValues(of: .rql))
        try query.checkSubscription(schema: schema)
    }

    /// Checks that a `filterBy` uses comparators for list elements only on lists.
    ///
    /// On a field with a single text, such a comparator would find a part of the text, which
    /// CloudKit does not look for. Only conditions that come in are checked, so that those saved
    /// before this check stay readable.
    ///
    /// - Throws: `PredicateError` whose path identifies the filter.
    package func checkLists(schema: RecordSchema) throws(PredicateError) {
        guard form == .filterBy else { return }
        var filters = [source]
        if case .array(let several) = source { filters = several }
        for (index, filter) in filters.enumerated() {
            guard case .object(let members) = filter,
                case .string(let comparator)? = members["comparator"],
                comparator.hasPrefix("LIST_CONTAINS") || comparator.hasPrefix("NOT_LIST_CONTAINS"),
                case .string(let name)? = members["fieldName"],
                schema.fields[name]?.type == .string
            else { continue }
            let place = if case .array = source { "filterBy[\(index)]" } else { "filterBy" }
            throw PredicateError(
                .check, "\(comparator) compares the elements of a list, but \(name) is a text",
                found: "a text", expected: "a list (a type that ends in _LIST)",
                hint: "for a text, use EQUALS, BEGINS_WITH or CONTAINS_ANY_TOKENS",
                path: "\(place).comparator")
        }
    }

    /// Checks that no argument would be read as a dictionary where a client means something else.
    ///
    /// Only conditions that come in are checked, so that those saved before this check stay
    /// readable.
    ///
    /// - Throws: `PredicateError` whose path identifies the argument.
    package func checkArguments() throws(PredicateError) {
        guard let form else { return }
        for (index, argument) in arguments.enumerated() {
            do {
                let path = "\(form.rawValue)Arguments[\(index)]"
                try FieldValue.checkArgument(argument, of: form.dialect, path: path)
            } catch {
                throw PredicateError(.parse, error.reason, path: error.path)
            }
        }
    }

    private func argumentValues(
        of form: PredicateForm
    ) throws(PredicateError) -> [FieldValue] {
        var values: [FieldValue] = []
        for (index, argument) in arguments.enumerated() {
            let path = "\(form.rawValue)Arguments[\(index)]"
            do {
                values.append(try FieldValue(argument: argument, path: path))
            } catch {
                throw PredicateError(.parse, error.reason, path: error.path)
            }
        }
        return values
    }
}

extension PredicateForm {
    /// The dialect of a condition in this form.
    package var dialect: PredicateDialect {
        switch self {
        case .filterBy: .filterBy
        case .predicate: .nspredicate
        case .rql: .rql
        case .where: .where
        }
    }
}
