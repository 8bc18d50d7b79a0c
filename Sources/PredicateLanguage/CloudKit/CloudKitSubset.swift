import RelayModel

extension RecordPredicate {
    /// Checks that the predicate keeps to the subset that CloudKit's CKQuery allows (CKQuery,
    /// "Predicate Rules").
    ///
    /// CKQuery allows CONTAINS only for an element of a list. Whether a field is a text instead is
    /// checked only if a schema is given.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` at the first part that CloudKit refuses.
    public func checkCloudKit(schema: RecordSchema? = nil) throws(PredicateError) {
        try CloudKitSubset.check(root)
        if let schema { try CloudKitSubset.checkTexts(root, schema) }
    }
}

/// The subset of NSPredicate that CloudKit supports.
enum CloudKitSubset {
    private typealias Node = RecordPredicate.Node
    private typealias Expression = RecordPredicate.Expression
    private typealias Comparison = RecordPredicate.Comparison

    static func check(_ node: RecordPredicate.Node) throws(PredicateError) {
        switch node {
        case .constant: return
        case .comparison(let comparison): try check(comparison)
        case .and(let nodes):
            for node in nodes { try check(node) }
        case .or(let nodes):
            throw refusal(
                "OR is not supported", at: span(of: nodes[0]), expected: "AND",
                hint: "save one subscription for each alternative, or use IN")
        case .not(let inner): try checkNegated(inner)
        }
    }

    /// Refuses CONTAINS, and IN with the field on the right, for a field that is a text in the
    /// schema.
    static func checkTexts(
        _ node: RecordPredicate.Node, _ schema: RecordSchema
    ) throws(PredicateError) {
        switch node {
        case .constant: return
        case .and(let nodes), .or(let nodes):
            for node in nodes { try checkTexts(node, schema) }
        case .not(let inner): try checkTexts(inner, schema)
        case .comparison(let comparison):
            let (list, span) =
                comparison.comparator == .in
                ? (comparison.right, comparison.rightSpan) : (comparison.left, comparison.leftSpan)
            guard comparison.comparator == .contains || comparison.comparator == .in,
                case .path(let path) = list, let name = path.fieldName,
                schema.fields[name]?.type == .string
            else { return }
            throw refusal(
                "\(comparison.comparator.rawValue) in a text is not supported", at: span,
                expected: "a list", hint: "BEGINSWITH is CloudKit's only text operator")
        }
    }

    private static func checkNegated(_ node: Node) throws(PredicateError) {
        switch node {
        case .constant: return
        case .not(let inner): try checkNegated(inner)
        case .and, .or:
            throw refusal(
                "NOT before AND or OR is not supported", at: span(of: node),
                expected: "NOT before one comparison")
        case .comparison(let comparison):
            if comparison.comparator == .between {
                throw refusal(
                    "NOT of BETWEEN is not supported", at: comparison.span,
                    expected: "two comparisons, one for each bound, in two subscriptions")
            }
            if isTokenSearch(comparison) {
                throw refusal(
                    "NOT of a token search is not supported", at: comparison.span,
                    expected: "a token search without NOT")
            }
            if isDistance(comparison.left) || isDistance(comparison.right) {
                throw refusal(
                    "NOT of a distance is not supported", at: comparison.span,
                    expected: "a distance without NOT")
            }
            try check(comparison)
        }
    }

    private static func check(_ comparison: Comparison) throws(PredicateError) {
        if isTokenSearch(comparison) {
            guard case .string? = comparison.right.literal else {
                throw refusal(
                    "a token search needs a text", at: comparison.rightSpan, expected: "a text")
            }
            return
        }
        if isDistance(comparison.left) || isDistance(comparison.right) {
            return try checkDistance(comparison)
        }
        try checkComparator(comparison)
        try checkOptions(comparison)
        try checkSides(comparison)
    }

    private static func checkComparator(_ comparison: Comparison) throws(PredicateError) {
        let comparator = comparison.comparator
        switch comparator {
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .between, .in,
            .contains, .beginsWith:
            break
        case .endsWith, .like, .matches, .typeEquals, .geoWithin, .tokenMatches:
            throw refusal(
                "\(comparator.rawValue) is not supported", at: comparison.span,
                expected: "= != < <= > >= BETWEEN IN CONTAINS BEGINSWITH",
                hint: "BEGINSWITH is CloudKit's only text operator")
        }
        switch comparison.quantifier {
        case nil: return
        case .any?:
            switch comparator {
            case .in, .contains, .equal, .beginsWith: return
            default:
                throw refusal(
                    "ANY with \(comparator.rawValue) is not supported", at: comparison.span,
                    expected: "ANY with = IN CONTAINS BEGINSWITH")
            }
        // Each constant must be in a list: ALL of a constant list IN a field.
        case .all? where comparator == .in && comparison.left.literal?.elements != nil: return
        case .all?, .none?:
            throw refusal(
                "\(comparison.quantifier?.rawValue ?? "") is not supported", at: comparison.span,
                expected: "ANY or SOME")
        }
    }

    private static func checkOptions(_ comparison: Comparison) throws(PredicateError) {
        guard comparison.options.isEmpty, comparison.rules == .apple else {
            throw refusal(
                "text options are not supported", at: comparison.span,
                expected: "\(comparison.comparator.rawValue) without brackets")
        }
    }

    /// Checks that one side is a field and the other a value.
    ///
    /// Forms with the value first are allowed, such as `'red' IN tags` and `ANY {'a'} = f`.
    private static func checkSides(_ comparison: Comparison) throws(PredicateError) {
        try checkSide(comparison.left, at: comparison.leftSpan)
        try checkSide(comparison.right, at: comparison.rightSpan)
        switch (comparison.left, comparison.right) {
        case (.path, .path):
            throw refusal(
                "two fields cannot be compared", at: comparison.span,
                expected: "a field and a value")
        case (.path, _), (_, .path): break
        default:
            throw refusal(
                "a comparison needs a field", at: comparison.span, expected: "a field and a value")
        }
        if comparison.comparator == .contains, case .path = comparison.right,
            comparison.left.literal?.elements == nil
        {
            throw refusal(
                "CONTAINS needs the list on the left", at: comparison.span,
                expected: "list CONTAINS value")
        }
    }

    private static func checkSide(
        _ side: Expression, at span: SourceSpan
    ) throws(PredicateError) {
        switch side {
        case .constant(let value): try checkValue(value, at: span)
        case .call(.now, _): return
        case .path(let path):
            guard let name = path.fieldName else {
                throw refusal(
                    path.components.isEmpty
                        ? "SELF is for token searches only"
                        : "key paths, indexes and aggregates are not supported",
                    at: span, expected: "the name of a field")
            }
            guard isFieldName(name) else {
                throw refusal(
                    "`\(name.prefix(60))` is not a valid field name", at: span,
                    expected: "a letter, then letters, digits and _")
            }
        default:
            throw refusal(
                "only fields, values, now() and distanceToLocation:fromLocation: are supported",
                at: span, found: "`\(side.canonicalText.prefix(60))`",
                expected: "a field, a value, now() or distanceToLocation:fromLocation:")
        }
    }

    private static func checkValue(
        _ value: FieldValue, at span: SourceSpan
    ) throws(PredicateError) {
        switch value {
        case .string, .integer, .double, .bool, .timestamp, .bytes, .reference, .location:
            return
        case .list(let values):
            for value in values { try checkValue(value, at: span) }
        case .set(let values):
            for value in values { try checkValue(value, at: span) }
        case .null, .uuid, .objectID, .map:
            throw refusal(
                "\(value.kind) cannot be compared", at: span, found: value.kind,
                expected: "text, number, date, data, reference, location, or a list of these")
        }
    }

    /// Checks for `distanceToLocation:fromLocation:(field, location) < radius`.
    ///
    /// The two locations may be exchanged, and so may the two sides.
    private static func checkDistance(_ comparison: Comparison) throws(PredicateError) {
        let isLeft = isDistance(comparison.left)
        let radius = isLeft ? comparison.right : comparison.left
        guard case .call(.distance, let arguments) = isLeft ? comparison.left : comparison.right,
            arguments.count == 2,
            isFieldAndPlace(arguments[0], arguments[1])
                || isFieldAndPlace(arguments[1], arguments[0]),
            radius.literal?.double != nil, comparison.quantifier == nil
        else {
            throw refusal(
                "a distance must be compared as "
                    + "distanceToLocation:fromLocation:(field, location) < radius",
                at: comparison.span,
                expected: "distanceToLocation:fromLocation:(field, location) < radius")
        }
        switch (comparison.comparator, isLeft) {
        case (.less, true), (.lessOrEqual, true), (.greater, false), (.greaterOrEqual, false):
            return
        default:
            throw refusal(
                "only places inside a circle can be matched", at: comparison.span,
                found: comparison.comparator.rawValue, expected: "< or <=")
        }
    }

    private static func isFieldAndPlace(_ field: Expression, _ place: Expression) -> Bool {
        guard case .path(let path) = field, let name = path.fieldName, isFieldName(name),
            case .location? = place.literal
        else { return false }
        return true
    }

    private static func isDistance(_ expression: Expression) -> Bool {
        if case .call(.distance, _) = expression { true } else { false }
    }

    /// Returns whether a comparison is `self CONTAINS 'words'` or
    /// `allTokens TOKENMATCHES[cdl] 'words'`.
    private static func isTokenSearch(_ comparison: Comparison) -> Bool {
        guard comparison.quantifier == nil, comparison.rules == .apple else { return false }
        switch comparison.comparator {
        case .contains: return comparison.left == .record
        case .tokenMatches:
            return comparison.left == .record || comparison.searchesAllTokens
        default: return false
        }
    }

    /// Returns whether `name` follows CloudKit's rule: a letter, then letters, digits and `_`.
    ///
    /// System fields count too.
    private static func isFieldName(_ name: String) -> Bool {
        guard let first = name.utf8.first, Self.isLetter(first) || name.hasPrefix("___") else {
            return false
        }
        return name.utf8.allSatisfy {
            Self.isLetter($0) || $0.isDigit || $0 == UInt8(ascii: "_")
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func span(of node: Node) -> SourceSpan {
        switch node {
        case .comparison(let comparison): comparison.span
        case .not(let inner): span(of: inner)
        case .and(let nodes), .or(let nodes): nodes.first.map { span(of: $0) } ?? .none
        case .constant: .none
        }
    }

    private static func refusal(
        _ reason: String, at span: SourceSpan, found: String? = nil, expected: String? = nil,
        hint: String? = nil
    ) -> PredicateError {
        PredicateError(
            .check, "CloudKit: \(reason)", at: span, found: found, expected: expected, hint: hint)
    }
}
