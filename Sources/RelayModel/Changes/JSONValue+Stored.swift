/// What the relay keeps as JSON is written here, so that nothing is acknowledged that could not be
/// read again.
extension JSONValue {
    /// How many arrays and objects stand around the innermost value; 0 for a text or a number.
    public var depth: Int {
        switch self {
        case .null, .bool, .integer, .number, .string: 0
        case .array(let elements):
            elements.reduce(0) { max($0, 1 + $1.depth) }
        case .object(let object):
            object.members.reduce(0) { max($0, 1 + $1.value.depth) }
        }
    }

    /// This value as the text that is kept.
    ///
    /// - Throws: ``JSONContractError`` at `path` if it is too deep to be read again.
    public func storedText(path: String = "") throws(JSONContractError) -> String {
        let depth = depth
        guard depth <= Limits.maximumStoredJSONDepth else {
            throw JSONContractError(
                path: path,
                reason: "nested \(depth) levels deep; \(Limits.maximumJSONDepth) are allowed")
        }
        return text
    }
}

extension RecordChange {
    /// The text as which the change lies in the log.
    ///
    /// - Throws: ``JSONContractError`` if a field's value is too deep to be read again.
    public func storedText() throws(JSONContractError) -> String {
        try checkDepth()
        return String(decoding: storedBytes, as: UTF8.self)
    }

    /// Refuses a change that the log could not keep.
    ///
    /// - Throws: ``JSONContractError`` at the first value that is too deep to be read again.
    package func checkDepth() throws(JSONContractError) {
        try before?.fields.checkDepth(path: "before")
        try after?.fields.checkDepth(path: "after")
    }
}

extension FieldValue {
    /// How many arrays and objects stand around the innermost value of this one's notation.
    package var notationDepth: Int {
        switch self {
        case .null, .bool, .integer, .double, .string: 0
        case .bytes, .reference, .uuid, .objectID: 1
        case .timestamp, .location: 2
        case .list(let values): values.reduce(0) { max($0, 1 + $1.notationDepth) }
        case .set(let values): values.reduce(1) { max($0, 2 + $1.notationDepth) }
        case .map(let members):
            members.values.reduce(0) { max($0, $1.notationDepth) } + Self.levels(of: members)
        }
    }

    /// The levels of a dictionary itself: one more where it is tagged.
    private static func levels(of members: RecordFields) -> Int {
        if members.isEmpty { return 0 }
        return members.keys.contains { $0.utf8.first == UInt8(ascii: "$") } ? 2 : 1
    }

    /// Refuses a value that is too deep to be kept.
    ///
    /// - Throws: ``JSONContractError`` at `path`.
    public func checkDepth(path: @autoclosure () -> String) throws(JSONContractError) {
        let depth = notationDepth
        guard depth <= Limits.maximumValueDepth else {
            throw JSONContractError(
                path: path(),
                reason: "nested \(depth) levels deep as it is kept; "
                    + "\(Limits.maximumValueDepth) are allowed")
        }
    }
}

extension RecordFields {
    /// Refuses fields with a value that is too deep to be kept.
    ///
    /// - Throws: ``JSONContractError`` at the first one.
    public func checkDepth(path: String) throws(JSONContractError) {
        // Names are needed of what is refused alone.
        guard values.contains(where: { $0.notationDepth > Limits.maximumValueDepth }) else {
            return
        }
        for (name, value) in self {
            try value.checkDepth(path: path.isEmpty ? name : "\(path).\(name)")
        }
    }
}
