package import PredicateLanguage
package import RelayModel

extension SubscriptionQuery {
    /// The condition as a predicate, whichever form it was written in; without one, every record.
    ///
    /// Saving calls it to refuse what cannot be meant and to fill ``canonical``; the follower calls
    /// it again for what was saved. A text of NSPredicate is read whole, not only as far as
    /// CloudKit's CKQuery allows: what goes further is our extension.
    ///
    /// - Parameter owner: whose name as the owner of a zone says no more than none.
    /// - Returns: The predicate as it is meant of records in the subscriber's database.
    /// - Throws: `PredicateError`; its path, or its offset, lies within ``source``.
    package func recordPredicate(
        implying owner: UserID? = nil
    ) throws(PredicateError) -> RecordPredicate {
        try written().meant(implying: owner)
    }

    private func written() throws(PredicateError) -> RecordPredicate {
        guard let form else { return .everyRecord }
        let arguments = try argumentValues(of: form)
        if form == .rql, case .string(let text) = source {
            // What Flexible Sync refuses of a subscription is refused here too.
            let query = try RealmQuery(parsing: text, arguments: arguments)
            try query.checkSubscription()
            return query.predicate
        }
        return try RecordPredicate.parse(source, dialect: form.dialect, arguments: arguments)
    }

    /// Refuses, of a condition in RQL, what Flexible Sync refuses of fields of these kinds, such as
    /// the `@count` of a text.
    ///
    /// It is asked when a condition comes in. What was saved before it was asked is still read.
    ///
    /// - Throws: `PredicateError`; its offset lies within ``source``.
    package func checkFlexibleSync(schema: RecordSchema) throws(PredicateError) {
        guard form == .rql, case .string(let text) = source else { return }
        let query = try RealmQuery(parsing: text, arguments: try argumentValues(of: .rql))
        try query.checkSubscription(schema: schema)
    }

    /// Refuses, of a `filterBy`, comparators for elements of lists on a field that is one text: a
    /// part of the text would be found instead, which CloudKit does not look for.
    ///
    /// It is asked when a condition comes in. What was saved before it was asked is still read.
    ///
    /// - Throws: `PredicateError` whose path names the filter.
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
                .check, "\(comparator) asks for elements of a list, and \(name) is a text",
                found: "a text", expected: "a list (a type that ends in _LIST)",
                hint: "of a text ask EQUALS, BEGINS_WITH or CONTAINS_ANY_TOKENS",
                path: "\(place).comparator")
        }
    }

    /// Refuses arguments that would be dictionaries where a client means something else.
    ///
    /// It is asked when a condition comes in. What was saved before it was asked is still read.
    ///
    /// - Throws: `PredicateError` whose path names the argument.
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
