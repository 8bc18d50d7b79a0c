import RelayModel

extension RecordSchema {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    /// Checks the fields of one comparison, and whether the types of its sides fit each other.
    ///
    /// `isNegated` says whether the comparison is negated. It is `nil` if both cases are possible.
    func check(
        _ comparison: Comparison, isNegated: Bool? = false
    ) throws(PredicateError) {
        if let inner = Self.absent(comparison, isNegated) {
            _ = try type(of: inner)
            return
        }
        var left: FieldType?
        // A search in all texts of a record has no field on its left.
        if !comparison.searchesAllTokens { left = try type(of: comparison.left) }
        let right = try typeOfRight(comparison)
        if comparison.quantifier != nil, let collection = left {
            guard let element = collection.element else {
                throw mismatch(
                    "a quantifier needs a collection", comparison.leftSpan, found: collection.word,
                    expected: "a list")
            }
            left = element
        }
        let sides = Sides(left: left, right: right, comparison: comparison)
        switch comparison.comparator {
        case .equal, .notEqual: try checkEquality(sides)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            try checkOrder(left, comparison.leftSpan, sides)
            try checkOrder(right, comparison.rightSpan, sides)
            try checkEquality(sides)
        case .between: try checkBetween(sides)
        case .in: try checkMembership(element: left, of: right, sides)
        case .contains: try checkMembership(element: right, of: left, sides)
        case .beginsWith, .endsWith, .like, .matches, .typeEquals:
            try checkText(left, comparison.leftSpan, sides)
            try checkText(right, comparison.rightSpan, sides)
        case .tokenMatches:
            // In a list, the search goes through each text.
            try checkText(left?.searched, comparison.leftSpan, sides)
        case .geoWithin: return
        }
    }

    /// Returns the operand of a CAST that is compared with nil, if the comparison asks for records
    /// without a value.
    ///
    /// CAST of nil is nil for every target, so such records are found even if CAST is not defined
    /// for the field's type.
    private static func absent(_ comparison: Comparison, _ isNegated: Bool?) -> Expression? {
        let wanted: RecordPredicate.Comparator = isNegated == true ? .notEqual : .equal
        guard isNegated != nil, comparison.comparator == wanted, comparison.rules == .apple,
            comparison.quantifier == nil
        else { return nil }
        var inner: Expression
        switch (comparison.left, comparison.right) {
        case (.cast(let cast, _), .constant(.null)), (.constant(.null), .cast(let cast, _)):
            inner = cast
        default: return nil
        }
        while case .cast(let next, _) = inner { inner = next }
        return inner
    }

    /// Returns the type of the right side.
    ///
    /// If it fails, the error hints that an unknown word on this side was often meant as a text.
    private func typeOfRight(_ comparison: Comparison) throws(PredicateError) -> FieldType? {
        do {
            return try type(of: comparison.right)
        } catch {
            guard error.hint == nil, let word = unknownWord(in: comparison.right) else {
                throw error
            }
            var told = error
            told.hint = Self.hintForWord(word)
            throw told
        }
    }

    /// Returns the hint for a word that is not a known field.
    static func hintForWord(_ word: String) -> String {
        "a word without quotes is a field name; write a text as \"\(word.prefix(60))\""
    }

    /// Returns the first word of a side, or of a list, that is not a known field.
    private func unknownWord(in side: Expression) -> String? {
        var words = [side]
        if case .list(let elements) = side { words = elements }
        return words.lazy.compactMap(\.soleName).first { name in
            fields[name] == nil && Self.systemFields[name] == nil
        }
    }

    /// The two sides of a comparison, with their types where these are known.
    private struct Sides {
        var left: FieldType?
        var right: FieldType?
        var comparison: Comparison

        var word: String { comparison.comparator.rawValue }
    }

    private func checkEquality(_ sides: Sides) throws(PredicateError) {
        guard let left = sides.left, let right = sides.right else { return }
        switch sides.comparison.rules {
        case .minapp: if left.agreesInMinapp(with: right) { return }
        case .realm:
            // A list without a quantifier means ANY of its elements.
            if let element = left.element, element.agrees(with: right) { return }
            if let element = right.element, element.agrees(with: left) { return }
            fallthrough
        case .apple, .firebase: if left.agrees(with: right) { return }
        }
        let constantIsLeft = sides.comparison.left.literal != nil
        throw mismatch(
            "\(left.word) and \(right.word) cannot be compared",
            constantIsLeft ? sides.comparison.leftSpan : sides.comparison.rightSpan,
            found: constantIsLeft ? left.word : right.word,
            expected: constantIsLeft ? right.word : left.word,
            hint: Self.hint(left, right)
                ?? (sides.comparison.rules == .apple
                    ? Self.hintForDate(sides)
                        ?? Self.hintForText(
                            constantIsLeft ? left : right, for: constantIsLeft ? right : left)
                        ?? Self.hintForQuotes(sides) ?? Self.hintForList(left, right)
                    : nil))
    }

    /// Returns a hint on how to write a number or a boolean, if a text contains one.
    private static func hintForQuotes(_ sides: Sides) -> String? {
        let constant = sides.comparison.right.literal ?? sides.comparison.left.literal
        guard case .string(let text)? = constant, text.utf8.count <= 40 else { return nil }
        switch sides.left == .string ? sides.right : sides.left {
        case .integer?, .double?:
            return Double(text) == nil ? nil : "write a number without quotes: \(text)"
        case .boolean?:
            let words = ["true", "false", "yes", "no"]
            return words.contains(text.lowercased())
                ? "write a boolean without quotes: \(text.uppercased())" : nil
        default: return nil
        }
    }

    /// Returns a hint on how to ask for an element of a list, if the list itself is compared.
    private static func hintForList(_ left: FieldType?, _ right: FieldType?) -> String? {
        switch (left, right) {
        case (.list(let element)?, let other?) where !other.isList && element.agrees(with: other),
            (let other?, .list(let element)?) where !other.isList && element.agrees(with: other):
            hintForElements
        default: nil
        }
    }

    private static let hintForElements = "write ANY before the list to compare its elements"

    /// Returns a hint on how to write a date, if a text or a number is compared with a field of
    /// dates.
    private static func hintForDate(_ sides: Sides) -> String? {
        let isLeft = sides.left == .timestamp
        guard isLeft != (sides.right == .timestamp),
            case .path = isLeft ? sides.comparison.left : sides.comparison.right
        else { return nil }
        switch isLeft ? sides.right : sides.left {
        case .string?, .integer?, .double?:
            return "write a date as CAST(seconds since 2001, \"NSDate\"), "
                + "or as %@ with an argument {\"$date\": seconds since 1970}"
        default: return nil
        }
    }

    /// Returns a hint on how to write a value that has no literal, if a text is used instead.
    private static func hintForText(_ constant: FieldType, for field: FieldType) -> String? {
        switch (constant, field) {
        case (.string, .uuid):
            "write a UUID as CAST(\"…\", \"NSUUID\"), or as %@ with an argument "
                + "{\"$uuid\": \"…\"}"
        case (.string, .objectID):
            "write an object ID as CAST(\"…\", \"ObjectId\"), or as %@ with an argument "
                + "{\"$oid\": \"…\"}"
        default: nil
        }
    }

    /// Returns a hint on how to compare a reference with the name of a record.
    private static func hint(_ left: FieldType, _ right: FieldType) -> String? {
        guard left == .reference && right == .string || left == .string && right == .reference
        else { return nil }
        return "give a reference {recordName}, or compare the member recordName"
    }

    private func checkOrder(
        _ type: FieldType?, _ span: SourceSpan, _ sides: Sides
    ) throws(PredicateError) {
        guard let type, !type.hasOrder else { return }
        let rules = sides.comparison.rules
        let hasElements = type.isList && type.element?.hasOrder == true
        if rules == .realm || rules == .minapp, type.element?.hasOrder == true { return }
        throw mismatch(
            "`\(sides.word)` cannot be used on \(type.word), which has no order", span,
            found: type.word, expected: "a number, a text or a date",
            hint: hasElements ? Self.hintForElements : nil)
    }

    private func checkBetween(_ sides: Sides) throws(PredicateError) {
        try checkOrder(sides.left, sides.comparison.leftSpan, sides)
        guard let left = sides.left, let bound = sides.right?.element, !left.agrees(with: bound)
        else { return }
        throw mismatch(
            "\(left.word) cannot be compared with bounds of another kind",
            sides.comparison.rightSpan, found: bound.word, expected: left.word)
    }

    private func checkMembership(
        element: FieldType?, of collection: FieldType?, _ sides: Sides
    ) throws(PredicateError) {
        guard let collection else { return }
        let span =
            sides.comparison.comparator == .in
            ? sides.comparison.rightSpan : sides.comparison.leftSpan
        switch collection {
        case .mixed, .map: return
        case .list(let member):
            guard let element, !element.agrees(with: member) else { return }
            throw mismatch(
                "\(element.word) cannot be an element of \(collection.word) in which each "
                    + "element is \(member.word)", span,
                found: element.word, expected: member.word,
                hint: sides.comparison.comparator == .in
                    ? Self.hintForList(element, member) : nil)
        case .string:
            guard let element, !element.agrees(with: .string) else { return }
            throw mismatch(
                "\(element.word) cannot be part of a text", span, found: element.word,
                expected: "a text")
        default:
            throw mismatch(
                "\(sides.word) needs a list or a text", span, found: collection.word,
                expected: "a list or a text")
        }
    }

    private func checkText(
        _ type: FieldType?, _ span: SourceSpan, _ sides: Sides
    ) throws(PredicateError) {
        guard let type, !type.agrees(with: .string) else { return }
        if sides.comparison.rules == .realm {
            if type == .bytes || type.element?.agrees(with: .string) == true { return }
        }
        throw mismatch(
            "\(sides.word) compares texts", span, found: type.word, expected: "a text")
    }

    func mismatch(
        _ reason: String, _ span: SourceSpan, found: String, expected: String,
        hint: String? = nil
    ) -> PredicateError {
        PredicateError(.check, reason, at: span, found: found, expected: expected, hint: hint)
    }
}

extension RecordPredicate.Expression {
    /// The name, if this expression is a single word.
    var soleName: String? {
        guard case .path(let path) = self, let names = path.memberNames, names.count == 1 else {
            return nil
        }
        return names[0]
    }
}

private extension RecordSchema.FieldType {
    /// Whether this is a list, and not a dictionary.
    var isList: Bool {
        if case .list = self { true } else { false }
    }

    /// The type that a search for words looks into.
    var searched: Self {
        switch self {
        case .list(let element): element.searched
        case .map: .mixed
        default: self
        }
    }
}

extension RecordSchema {
    /// Checks Realm's rule: where a type has an indexed queryable field, every query compares it
    /// with constants by `==` or `IN`, at the top or joined to the rest by AND.
    func checkIndexedField(of predicate: RecordPredicate) throws(PredicateError) {
        let indexed = fields.filter(\.value.isIndexedQueryable).keys.sorted()
        guard !indexed.isEmpty else { return }
        let isBound = predicate.root.joinedByAnd.contains { term in
            guard case .comparison(let comparison) = term else { return false }
            return indexed.contains { Self.binds($0, comparison) }
        }
        guard !isBound else { return }
        throw PredicateError(
            .check, "the indexed queryable field \(indexed[0]) must be compared with a constant",
            expected: "\(indexed[0]) == … or \(indexed[0]) IN {…}, joined by AND",
            hint: "\(indexed[0]) == … AND (…)")
    }

    private static func binds(_ field: String, _ comparison: Comparison) -> Bool {
        let path = Expression.field(field)
        guard comparison.quantifier == nil else { return false }
        switch comparison.comparator {
        case .equal:
            return comparison.left == path && comparison.right.literal != nil
                || comparison.right == path && comparison.left.literal != nil
        case .in: return comparison.left == path && comparison.right.literal != nil
        default: return false
        }
    }
}
