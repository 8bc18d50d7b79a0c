import PredicateLanguage
import RelayModel
import Testing

/// Random conditions as clients write them: in every dialect, and in corners of NSPredicate that
/// rows cannot judge.
extension RandomWorld {
    /// Draws a condition in one of the dialects; `nil` if the constants that were drawn do not fit
    /// it.
    mutating func written() -> RecordPredicate? {
        switch generator.below(6) {
        case 0, 1: text(Self.formats) { try RecordPredicate(format: $0, arguments: $1) }
        case 2: text(Self.queries) { try RecordPredicate(rql: $0, arguments: $1) }
        case 3: try? RecordPredicate(where: conditions(depth: 2))
        case 4: filters()
        default: window()
        }
    }

    /// Draws a written condition, alone or inside another condition.
    mutating func mixed() -> RecordPredicate? {
        guard let written = written() else { return nil }
        switch generator.below(6) {
        case 0: return RecordPredicate(.not(written.root))
        case 1: return RecordPredicate(.and([written.root, node(depth: 1)]))
        case 2: return RecordPredicate(.or([node(depth: 1), written.root]))
        case 3: return RecordPredicate(.not(.or([.not(written.root), node(depth: 1)])))
        default: return written
        }
    }

    private mutating func text(
        _ formats: [String], _ read: (String, [FieldValue]) throws -> RecordPredicate
    ) -> RecordPredicate? {
        var format = generator.pick(formats)
        for name in ["#f", "#g"] {
            format = format.replacing(name, with: generator.pick(Self.fields))
        }
        let arguments = [scalar(), scalar()]
        return try? read(format, arguments)
    }

    private static let formats = [
        "SUBQUERY(#f, $x, $x == %@).@count > 0", "SUBQUERY(#f, $x, $x != %@).@count == 1",
        "NOT SUBQUERY(#f, $x, $x > 1 AND $x < %@).@count > 0", "ALL #f > %@", "ALL #f == %@",
        "NONE #f == %@", "NONE #f > %@", "ANY #f != %@", "ANY #f BEGINSWITH 'a'", "#f != %@",
        "NOT #f == %@", "NOT #f != %@", "NOT (#f > 1 AND #g < %@)", "#f * 2 > %@", "#f + #g == 3",
        "-#f < 1", "#f[0] == %@", "#f[FIRST] == %@", "#f[SIZE] > 1", "#f.@count == 2",
        "#f == #g", "#f != #g", "#f IN #g", "%@ IN #f", "NOT %@ IN #f", "#f BETWEEN {0, %@}",
        "NOT #f BETWEEN {0, %@}", "#f IN {%@, %@, 1, 'a'}", "NOT #f IN {%@, %@}", "#f == nil",
        "#f != nil", "#f == nil OR #g == %@", "NOT (#f == %@ OR #g == %@)",
        "(#f == %@ AND #g > 0) OR (#f == %@ AND #g <= 0)", "TRUEPREDICATE AND #f == %@",
        "FALSEPREDICATE OR #f == %@", "NOT NOT NOT #f == %@", "#f ENDSWITH 'b' AND #g != %@",
        "#f < now()", "#f == %@ AND #f == %@", "#f > %@ AND #f < %@ AND #g == 'a'",
        "lowercase(#f) == 'a'", "length(#f) > 1", "abs(#f) == 1", "#f.a.b == %@", "#f.b.a == %@",
    ]

    private static let queries = [
        "#f == $0", "#f != $0", "ANY #f == $0", "ALL #f == $0", "NONE #f == $0", "#f > $0",
        "#f.@count > 1", "#f.@size == 2", "#f BEGINSWITH[c] 'A'", "#f CONTAINS 'b'",
        "#f LIKE 'a*'", "#f ENDSWITH ''", "#f BETWEEN {0, 2}", "#f IN {1, 'a', nil}", "#f == nil",
        "#f != nil", "NOT #f == $0", "NOT (#f > 1 OR #g == $0)", "#f == #g", "#f + 1 > 2",
        "#f[0] == $0", "ANY #f > 1", "ANY #f IN {1, 'a'}", "#f == $0 AND #g == $1", "#f == TRUE",
        "#f.a == $0", "#f ==[c] 'ABC'", "#f IN $0", "$0 IN #f", "#f < $0 OR #g >= $1",
    ]

    private mutating func conditions(depth: Int) -> JSONValue {
        if depth > 0, generator.holds(oneIn: 2) {
            let members = (0..<1 + generator.below(3)).map { _ in conditions(depth: depth - 1) }
            return [generator.pick(["$and", "$or"]): .array(members)]
        }
        let operations = ["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]
        let constant = generator.pick(Self.plainJSON)
        return [
            generator.pick(Self.fields): [generator.pick(operations): constant]
        ]
    }

    private static let plainJSON: [JSONValue] = [
        1, 0, 2, .number(0.5), .number(10.25), -3, "a", "ab", "", "é", true, false, .null, "漢字",
        "2023-11-14T22:13:20.000000+00:00",
    ]

    mutating func filters() -> RecordPredicate? {
        let comparators = [
            "EQUALS", "NOT_EQUALS", "LESS_THAN", "LESS_THAN_OR_EQUALS", "GREATER_THAN",
            "GREATER_THAN_OR_EQUALS", "IN", "NOT_IN", "BEGINS_WITH", "NOT_BEGINS_WITH",
            "LIST_CONTAINS", "NOT_LIST_CONTAINS", "LIST_CONTAINS_ANY", "NOT_LIST_CONTAINS_ANY",
            "LIST_CONTAINS_ALL", "NOT_LIST_CONTAINS_ALL", "LIST_MEMBER_BEGINS_WITH",
            "NOT_LIST_MEMBER_BEGINS_WITH", "CONTAINS_ALL_TOKENS", "CONTAINS_ANY_TOKENS",
        ]
        let filters = (0..<1 + generator.below(2)).map { _ -> JSONValue in
            let comparator = generator.pick(comparators)
            let isList =
                comparator.hasSuffix("IN") && comparator != "BEGINS_WITH"
                || comparator.hasSuffix("ANY") || comparator.hasSuffix("ALL")
            let (one, other): (JSONValue, JSONValue) =
                generator.holds(oneIn: 2) ? ("a", "ab") : (1, 2)
            return [
                "comparator": .string(comparator),
                "fieldName": .string(generator.pick(Self.fields)),
                "fieldValue": ["value": isList ? .array([one, other]) : one],
            ]
        }
        return try? RecordPredicate(filterBy: .array(filters))
    }

    mutating func window() -> RecordPredicate? {
        let kinds: FirebaseQuery.Kinds = generator.holds(oneIn: 2) ? .ordered : .sameAsBound
        guard
            let ordered = try? FirebaseQuery(kinds: kinds)
                .ordered(byChild: generator.pick(Self.fields + ["title/a", "place/b/a"]))
        else { return nil }
        var query = ordered
        if generator.below(3) > 0 {
            let key = generator.holds(oneIn: 3) ? "r" : nil
            query =
                (try? query.starting(
                    at: scalar(), key: key, isIncluded: generator.holds(oneIn: 2))) ?? query
        }
        if generator.below(3) > 0 {
            query =
                (try? query.ending(
                    at: scalar(), isIncluded: generator.holds(oneIn: 2))) ?? query
        }
        return query.predicate
    }
}
