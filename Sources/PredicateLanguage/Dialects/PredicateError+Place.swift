public import RelayModel

extension PredicateError {
    /// Returns the error with the path of the refused comparison in a JSON source, if the error has
    /// no path yet.
    ///
    /// Comparisons that were read from JSON have no place in a text.
    public func placed(in source: JSONValue, dialect: PredicateDialect) -> PredicateError {
        guard path == nil, let comparison else { return self }
        var copy = self
        switch dialect {
        case .nspredicate, .ckquery, .rql: break
        case .filterBy: copy.path = Self.placeOfFilter(of: comparison, in: source)
        case .where:
            var number = comparison
            copy.path = Self.placeOfOperator(&number, in: source, "")
        }
        return copy
    }

    /// Returns the filter that a comparison comes from.
    ///
    /// One filter may become several comparisons.
    private static func placeOfFilter(of comparison: Int, in source: JSONValue) -> String? {
        guard case .array(let filters) = source else { return "filterBy" }
        var number = comparison
        for (index, filter) in filters.enumerated() {
            guard let predicate = try? RecordPredicate(filterBy: .array([filter])) else {
                return nil
            }
            let count = predicate.comparisons.count
            if number < count { return "filterBy[\(index)]" }
            number -= count
        }
        return nil
    }

    /// Returns the Minapp operator that a comparison comes from.
    ///
    /// Each operator becomes one comparison, in order.
    private static func placeOfOperator(
        _ number: inout Int, in json: JSONValue, _ path: String
    ) -> String? {
        guard case .object(let object) = json else { return nil }
        for member in object.members {
            let place = path.isEmpty ? member.name : "\(path).\(member.name)"
            switch member.value {
            case .array(let elements):
                for (index, element) in elements.enumerated() {
                    if let found = placeOfOperator(&number, in: element, "\(place)[\(index)]") {
                        return found
                    }
                }
            case .object(let operators):
                if number < operators.members.count {
                    return "\(place).\(operators.members[number].name)"
                }
                number -= operators.members.count
            default: return nil
            }
        }
        return nil
    }
}
