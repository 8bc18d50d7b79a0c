public import RelayModel

/// The reason why a condition is refused, with the place in its text.
public struct PredicateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The stage at which an error occurs.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The text does not follow the grammar.
        case parse
        /// The text follows the grammar, but cannot be meant, or does not fit the schema.
        case check
        /// The predicate has no outcome for the value of a record.
        case evaluate
    }

    /// The stage at which the error occurred.
    public var stage: Stage
    /// The reason, as a sentence for people.
    public var reason: String
    /// The offset of the place in the text, in UTF-8 bytes.
    public var offset: Int
    /// The number of bytes at the place.
    ///
    /// It is 0 at the end of the text.
    public var length: Int
    /// The text or value at the place.
    public var found: String?
    /// What is allowed at the place.
    public var expected: String?
    /// The nearest form that is allowed, or other advice.
    public var hint: String?
    /// The place in a JSON form, such as `filterBy[2].comparator`.
    ///
    /// It is `nil` for text.
    public var path: String?
    /// Whether the same condition may be accepted later.
    ///
    /// Then the condition itself is not at fault.
    public var passes = false
    /// The index of the refused comparison among the predicate's own comparisons.
    ///
    /// It is `nil` if the error is not about a single one.
    var comparison: Int?

    /// Creates an error.
    ///
    /// Give the place as `span` in a text, or as `path` in a JSON form.
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

    /// The wire form, for the member `predicateError`.
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

    /// The error as the answer to a request that contains the condition.
    public var apiError: APIError {
        APIError(
            passes ? .throttled : .badRequest, description, retryAfter: passes ? 1 : nil,
            details: ["predicateError": .object(json)])
    }

    /// The reason with the place, as one sentence for people.
    public var description: String {
        if let path { return "\(path): \(reason)" }
        return "at \(offset): \(reason)"
    }
}
