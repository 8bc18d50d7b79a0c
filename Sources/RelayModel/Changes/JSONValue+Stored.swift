/// Checks on what the relay stores as JSON, so that it never acknowledges a value that it could not
/// read again.
extension JSONValue {
    /// The number of arrays and objects around the innermost value; 0 for a scalar.
    public var depth: Int {
        switch self {
        case .null, .bool, .integer, .number, .string: 0
        case .array(let elements):
            elements.reduce(0) { max($0, 1 + $1.depth) }
        case .object(let object):
            object.members.reduce(0) { max($0, 1 + $1.value.depth) }
        }
    }

    /// Returns this value as the text that the store keeps.
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
    /// Returns the text of the change as the log stores it.
    ///
    /// - Throws: ``JSONContractError`` if a field's value is too deep to be read again.
    public func storedText() throws(JSONContractError) -> String {
        try checkDepth()
        return String(decoding: storedBytes, as: UTF8.self)
    }

    /// Checks that the log can store this change.
    ///
    /// - Throws: ``JSONContractError`` at the first value that is too deep to be read again.
    package func checkDepth() throws(JSONContractError) {
        try before?.fields.checkDepth(path: "before")
        try after?.fields.checkDepth(path: "after")
    }
}

extension FieldValue {
    /// The number of arrays and objects around the innermost value of this value's notation.
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

    /// Returns the levels that a dictionary itself adds: two if it needs the `$map` tag.
    private static func levels(of members: RecordFields) -> Int {
        if members.isEmpty { return 0 }
        return members.keys.contains { $0.utf8.first == UInt8(ascii: "$") } ? 2 : 1
    }

    /// Checks that the value is not too deep to be stored.
    ///
    /// - Throws: ``JSONContractError`` at `path` if it is too deep.
    public func checkDepth(path: @autoclosure () -> String) throws(JSONContractError) {
        let depth = notationDepth
        guard depth <= Limits.maximumValueDepth else {
            throw JSONContractError(
                path: path(),
                reason: "nested \(depth) levels deep in its stored form; "
                    + "\(Limits.maximumValueDepth) are allowed")
        }
    }
}

extension RecordFields {
    /// Checks that no field has a value that is too deep to be stored.
    ///
    /// - Throws: ``JSONContractError`` at the first field that is too deep.
    public func checkDepth(path: String) throws(JSONContractError) {
        // The names are needed only for the error, so the common case looks at the values alone.
        guard values.contains(where: { $0.notationDepth > Limits.maximumValueDepth }) else {
            return
        }
        for (name, value) in self {
            try value.checkDepth(path: path.isEmpty ? name : "\(path).\(name)")
        }
    }
}
