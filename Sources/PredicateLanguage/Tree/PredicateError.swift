public import RelayModel

/// Why a condition was refused, with the place in its text.
public struct PredicateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The moment at which an error shows.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The text is not of the language.
        case parse
        /// The text is, but can never be meant, or does not fit the schema.
        case check
        /// A record has a value for which the predicate has no answer.
        case evaluate
    }

    /// When it showed.
    public var stage: Stage
    /// What is wrong, as a sentence for people.
    public var reason: String
    /// The place in the text, in UTF-8 bytes.
    public var offset: Int
    /// The number of bytes in question; 0 at the end of the text.
    public var length: Int
    /// What stands there.
    public var found: String?
    /// What would be allowed there.
    public var expected: String?
    /// The nearest form that is allowed.
    public var hint: String?
    /// The place in a JSON form, such as `filterBy[2].comparator`; `nil` for text.
    public var path: String?
    /// Whether the same condition may be taken later: then it is not at fault.
    public var passes = false
    /// Which of the predicate's own comparisons was refused, counted from 0; `nil` where it was not
    /// a single one.
    var comparison: Int?

    /// Either `span` or `path` says where: the one in a text, the other in a JSON form.
    public init(
        _ stage: Stage, _ reason: String, at span: SourceSpan = .none, found: String? = nil,
        expected: String? = nil, hint: String? = nil, path: String? = nil
    ) {
        self.stage = stage
        self.reason = reason
        offset = span.offset
        length = span.length
        self.found = found
        self.expected = expected
        self.hint = hint
        self.path = path
    }

    /// The wire form of `predicateError`.
    public var json: JSONObject {
        var object: JSONObject = [
            "stage": .string(stage.rawValue), "offset": .integer(Int64(offset)),
            "length": .integer(Int64(length)),
        ]
        object["found"] = found.map(JSONValue.string)
        object["expected"] = expected.map(JSONValue.string)
        object["hint"] = hint.map(JSONValue.string)
        object["path"] = path.map(JSONValue.string)
        object["reason"] = .string(reason)
        return object
    }

    /// The answer to a request that brought the condition.
    public var apiError: APIError {
        APIError(
            passes ? .throttled : .badRequest, description, retryAfter: passes ? 1 : nil,
            details: ["predicateError": .object(json)])
    }

    /// One sentence for people, with the place.
    public var description: String {
        if let path { return "\(path): \(reason)" }
        return "at \(offset): \(reason)"
    }
}
