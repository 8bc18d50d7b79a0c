import RelayModel

extension AppleRules {
    /// Evaluates `value IN collection`, or `text IN text`.
    static func isMember(
        _ value: FieldValue, of collection: FieldValue, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        if let isMember = comparison.members?.contains(value) { return isMember }
        let options = comparison.source.options
        switch collection {
        case .null: return false
        case .list(let values): return values.contains { areEqual($0, value, options) }
        case .set(let values): return values.contains { areEqual($0, value, options) }
        case .map(let members):
            return members.values.contains { areEqual($0, value, options) }
        case .string(let text):
            switch value {
            case .null: return false
            case .string(let needle):
                return (comparison.needle ?? TextNeedle(needle, options))
                    .isFound(in: text, at: .anywhere)
            default: throw .wrongKind(operation: "IN with a text on its right", found: value.kind)
            }
        default: throw .wrongKind(operation: "IN", found: collection.kind)
        }
    }

    /// Evaluates `collection CONTAINS value`, `text CONTAINS text`, or `SELF CONTAINS 'words'`.
    static func contains(
        _ collection: FieldValue, _ value: FieldValue, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        let options = comparison.source.options
        switch collection {
        case .null: return false
        case .list(let values): return values.contains { areEqual($0, value, options) }
        case .set(let values): return values.contains { areEqual($0, value, options) }
        case .map(let members):
            if let words = comparison.words { return TokenSearch.isFound(words, in: collection) }
            return members.values.contains { areEqual($0, value, options) }
        case .string: return try hasText(collection, value, at: .anywhere, comparison)
        default: throw .wrongKind(operation: "CONTAINS", found: collection.kind)
        }
    }

    /// Evaluates BEGINSWITH, ENDSWITH and CONTAINS between texts.
    static func hasText(
        _ text: FieldValue, _ needle: FieldValue, at place: TextNeedle.Place,
        _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        switch (text, needle) {
        case (.string(let text), .string(let part)):
            return (comparison.needle ?? TextNeedle(part, comparison.source.options))
                .isFound(in: text, at: place)
        case (.null, .null), (.null, .string), (.string, .null): return false
        case (.string, let other), (.null, let other), (let other, _):
            throw .wrongKind(
                operation: comparison.source.comparator.rawValue, found: other.kind)
        }
    }

    /// Evaluates LIKE and MATCHES.
    static func matches(
        _ text: FieldValue, _ pattern: FieldValue, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        switch (text, pattern) {
        case (.string(let text), .string(let pattern)):
            let prepared = comparison.pattern
            let compiled =
                if let prepared { prepared } else { try compile(pattern, comparison) }
            guard let matches = compiled.matches(text) else {
                throw .badRegularExpression(
                    "it is too large for a text of \(text.utf8.count) bytes")
            }
            return matches
        case (.null, .null), (.null, .string), (.string, .null): return false
        case (.string, let other), (.null, let other), (let other, _):
            throw .wrongKind(
                operation: comparison.source.comparator.rawValue, found: other.kind)
        }
    }

    private static func compile(
        _ pattern: String, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> TextPattern {
        do throws(RegularExpressionRefusal) {
            return try TextPattern(
                pattern, of: comparison.source,
                by: comparison.engine ?? NoRegularExpressions())
        } catch {
            throw .badRegularExpression(error.reason)
        }
    }

    /// Evaluates TOKENMATCHES: one of the words on the right is a word on the left.
    static func hasToken(
        _ text: FieldValue, _ wanted: FieldValue, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        if text.isNull || wanted.isNull { return false }
        if let words = comparison.words { return TokenSearch.isFound(words, in: text) }
        switch wanted {
        case .string(let phrase):
            return TokenSearch.isFound(Set(TokenSearch.words(of: phrase)), in: text)
        case .list(let values):
            let words: [String] = values.flatMap { value -> [String] in
                if case .string(let word) = value { TokenSearch.words(of: word) } else { [] }
            }
            return TokenSearch.isFound(Set(words), in: text)
        default: throw .wrongKind(operation: "TOKENMATCHES", found: wanted.kind)
        }
    }

    /// Evaluates UTI-EQUALS.
    ///
    /// Type identifiers are not case-sensitive.
    static func isSameType(
        _ left: FieldValue, _ right: FieldValue
    ) throws(EvaluationError) -> Bool {
        switch (left, right) {
        case (.string(let a), .string(let b)):
            return TextComparison.areEqual(a, b, .ignoringCase)
        case (.null, .null), (.null, .string), (.string, .null): return false
        case (.string, let other), (.null, let other), (let other, _):
            throw .wrongKind(operation: "UTI-EQUALS", found: other.kind)
        }
    }
}
