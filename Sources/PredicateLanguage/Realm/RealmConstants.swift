import RelayModel

/// Checks that do not depend on the types of the fields.
enum RealmConstants {
    typealias Comparison = RecordPredicate.Comparison

    /// Throws if Realm refuses a comparison whatever the types of its fields are.
    static func check(_ comparison: Comparison) throws(PredicateError) {
        let sides = [comparison.left, comparison.right]
        if sides.contains(where: \.namesType) { try checkTypeNames(sides, comparison.span) }
        if comparison.comparator == .tokenMatches,
            case .string(let text)? = comparison.right.literal,
            text.utf8.allSatisfy(\.isBlank)
        {
            throw PredicateError(
                .check, "TEXT needs words to search for, but there are none", at: comparison.span,
                found: "\"\"", expected: "one or more words")
        }
        switch comparison.comparator {
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .between: break
        default: return
        }
        let hasNone = sides.contains { side in
            if case .reference? = side.literal { true } else { side.namesType }
        }
        guard hasNone else { return }
        throw PredicateError(
            .check, "links and types have no order", at: comparison.span,
            found: comparison.comparator.rawValue, expected: "== or !=")
    }

    /// Throws if a constant compared with `@type` is not the name of a type.
    private static func checkTypeNames(
        _ sides: [RecordPredicate.Expression], _ span: SourceSpan
    ) throws(PredicateError) {
        let constants = sides.compactMap(\.literal).flatMap { $0.elements ?? [$0] }
        for constant in constants {
            guard case .string(let name) = constant, RealmTypeName(queried: name) == nil
            else { continue }
            let names = RealmTypeName.allCases.map(\.rawValue).joined(separator: ", ")
            throw PredicateError(
                .check, "@type must be one of \(names)", at: span, found: "\"\(name.prefix(60))\"",
                expected: "the name of a type")
        }
    }
}
