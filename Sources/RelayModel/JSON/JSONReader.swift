/// The part of a JSON document that breaks the contract, and what is allowed there.
public struct JSONContractError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path from the top of the document: `operations[2].subscription.firesOn`.
    public let path: String
    /// What is wrong and what is allowed, as a sentence without the path.
    public let reason: String

    /// Creates an error at `path`.
    public init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    /// The error as one sentence, with the path.
    public var description: String { path.isEmpty ? reason : "\(path): \(reason)" }

    /// Returns the same error with `place` before its path, for a document that is part of a larger
    /// one.
    ///
    /// Readers join paths only when a part fails. Building the path of every list element took a
    /// fifth of the time of reading a list.
    package func inside(_ place: String) -> JSONContractError {
        let isIndex = path.utf8.first == UInt8(ascii: "[")
        let joint = place.isEmpty || path.isEmpty || isIndex ? "" : "."
        return JSONContractError(path: place + joint + path, reason: reason)
    }
}

/// Reads the members of one JSON object, and keeps its path for error messages.
///
/// Every look-up distinguishes a member that is absent or `null` from one of the wrong kind; the
/// latter is always an error.
public struct JSONReader: Sendable {
    /// The object that this reader reads.
    public let object: JSONObject
    /// The path of the object in its document.
    public let path: String

    /// Creates a reader of `value`, which must be an object.
    ///
    /// - Throws: ``JSONContractError`` if `value` is not an object.
    public init(_ value: JSONValue, path: String = "") throws(JSONContractError) {
        guard case .object(let object) = value else {
            throw JSONContractError(
                path: path, reason: "an object is expected, found \(value.kind)")
        }
        self.object = object
        self.path = path
    }

    /// Returns the path of the member `name`.
    public func path(of name: String) -> String {
        path.isEmpty ? name : "\(path).\(name)"
    }

    /// Returns an error about the member `name`.
    public func failure(_ name: String, _ reason: String) -> JSONContractError {
        JSONContractError(path: path(of: name), reason: reason)
    }

    /// Checks that the object has no members other than `names`.
    ///
    /// - Throws: ``JSONContractError`` that names the first unknown member and the allowed ones.
    public func allowOnly(_ names: [String]) throws(JSONContractError) {
        for member in object.members where !names.contains(member.name) {
            throw failure(
                member.name, "unknown field; allowed are \(names.joined(separator: ", "))")
        }
    }

    /// Returns the value of `name`, or `nil` if it is absent or `null`.
    public func value(_ name: String) -> JSONValue? {
        switch object[name] {
        case nil, .null: nil
        case let value?: value
        }
    }

    /// Returns the text of `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not a string.
    public func string(_ name: String) throws(JSONContractError) -> String? {
        switch value(name) {
        case nil: return nil
        case .string(let text): return text
        case let other?: throw failure(name, "a string is expected, found \(other.kind)")
        }
    }

    /// Returns the boolean `name`, or `nil` if it is absent or `null`; 0 and 1 count as booleans.
    ///
    /// - Throws: ``JSONContractError`` if it is anything else.
    public func bool(_ name: String) throws(JSONContractError) -> Bool? {
        switch value(name) {
        case nil: return nil
        case .bool(let flag): return flag
        case .integer(0): return false
        case .integer(1): return true
        case let other?: throw failure(name, "a boolean is expected, found \(other.kind)")
        }
    }

    /// Returns the integer `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not a 64-bit integer.
    public func integer(_ name: String) throws(JSONContractError) -> Int64? {
        switch value(name) {
        case nil: return nil
        case .integer(let number): return number
        case let other?: throw failure(name, "an integer is expected, found \(other.kind)")
        }
    }

    /// Returns the elements of `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not an array.
    public func array(_ name: String) throws(JSONContractError) -> [JSONValue]? {
        switch value(name) {
        case nil: return nil
        case .array(let elements): return elements
        case let other?: throw failure(name, "an array is expected, found \(other.kind)")
        }
    }

    /// Returns the texts of `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not an array of strings.
    public func strings(_ name: String) throws(JSONContractError) -> [String]? {
        guard let elements = try array(name) else { return nil }
        var texts: [String] = []
        for (index, element) in elements.enumerated() {
            guard case .string(let text) = element else {
                throw failure("\(name)[\(index)]", "a string is expected, found \(element.kind)")
            }
            texts.append(text)
        }
        return texts
    }

    /// Returns a reader of the object `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not an object.
    public func reader(_ name: String) throws(JSONContractError) -> JSONReader? {
        guard let value = value(name) else { return nil }
        return try JSONReader(value, path: path(of: name))
    }

    /// Returns the enumeration case whose raw value is the text of `name`, or `nil` if it is absent
    /// or `null`.
    ///
    /// - Throws: ``JSONContractError`` that lists the allowed words.
    public func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, as type: Choice.Type = Choice.self
    ) throws(JSONContractError) -> Choice? {
        guard let text = try string(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let words = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw failure(name, "\"\(text)\" is unknown; allowed are \(words)")
        }
        return choice
    }

    /// Unwraps the value of a required member.
    ///
    /// - Throws: ``JSONContractError`` if `value` is `nil`.
    public func require<Value>(_ name: String, _ value: Value?) throws(JSONContractError) -> Value {
        guard let value else { throw failure(name, "is required") }
        return value
    }
}
