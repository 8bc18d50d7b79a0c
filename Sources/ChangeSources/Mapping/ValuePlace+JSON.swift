import RelayModel

extension ValuePlace {
    /// Parses `{"constant"|"header"|"column"|"pointer": …}`.
    init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["constant", "header", "column", "pointer"])
        guard reader.object.members.count == 1 else {
            throw JSONContractError(
                path: path, reason: "must have exactly one of constant, header, column, pointer")
        }
        for member in reader.object.members {
            // The text is stored with each row, or appears in messages about it, so it is limited
            // like a name.
            guard case .string(let text) = member.value,
                text.utf8.count > Limits.maximumRecordNameBytes
            else { continue }
            throw reader.failure(
                member.name, "at most \(Limits.maximumRecordNameBytes) bytes are allowed")
        }
        if let text = try reader.string("constant") {
            self = .constant(text)
        } else if let name = try reader.optionalHeaderName("header") {
            self = .header(name)
        } else if let name = try reader.string("column") {
            guard !name.isEmpty else { throw reader.failure("column", "must not be empty") }
            self = .column(name)
        } else {
            self = .pointer(try reader.require("pointer", try reader.pointer("pointer")))
        }
    }

    var json: JSONValue {
        switch self {
        case .constant(let text): ["constant": .string(text)]
        case .header(let name): ["header": .string(name)]
        case .column(let name): ["column": .string(name)]
        case .pointer(let pointer): ["pointer": .string(pointer.description)]
        }
    }
}

extension JSONReader {
    /// Returns the place in the member `name`, or `nil` if it is absent.
    func place(_ name: String) throws(JSONContractError) -> ValuePlace? {
        guard let json = value(name) else { return nil }
        return try ValuePlace(json: json, path: path(of: name))
    }

    /// Returns the place or list of up to eight places in the member `name`, or `nil` if it is
    /// absent.
    func places(_ name: String) throws(JSONContractError) -> [ValuePlace]? {
        guard let json = value(name), case .array(let elements) = json.asList else { return nil }
        guard elements.count <= 8 else { throw failure(name, "must have at most 8 places") }
        var places: [ValuePlace] = []
        for (index, element) in elements.enumerated() {
            places.append(try ValuePlace(json: element, path: path(of: "\(name)[\(index)]")))
        }
        return places
    }

    /// Returns the JSON pointer in the member `name`, or `nil` if it is absent.
    func pointer(_ name: String) throws(JSONContractError) -> JSONPointer? {
        guard let text = try string(name) else { return nil }
        guard let pointer = JSONPointer(text) else {
            throw failure(name, "must be a JSON pointer such as /data/new (RFC 6901)")
        }
        return pointer
    }

    /// Returns the members of an object, each parsed by `read`; empty if the object is absent.
    ///
    /// There may be at most `most` members. Each save checks whether the named tables and columns
    /// exist, which takes the product of the named and the known ones.
    func table<Value>(
        _ name: String, most: Int,
        _ read: (JSONValue, String) throws(JSONContractError) -> Value
    ) throws(JSONContractError) -> [String: Value] {
        guard let inner = try reader(name) else { return [:] }
        try check(inner.object.members.map(\.name), of: name, most: most)
        var table: [String: Value] = [:]
        for member in inner.object.members {
            table[member.name] = try read(member.value, inner.path(of: member.name))
        }
        return table
    }
}

extension JSONReader {
    /// Refuses more than `most` names in the member `name`, and names that are too long for a table
    /// or column.
    func check(
        _ names: [String], of name: String, most: Int
    ) throws(JSONContractError) {
        guard names.count <= most else { throw failure(name, "at most \(most) are allowed") }
        guard names.allSatisfy({ $0.utf8.count <= Limits.maximumRecordNameBytes }) else {
            throw failure(name, "names have at most \(Limits.maximumRecordNameBytes) bytes")
        }
    }
}

extension JSONValue {
    /// This value if it is a list, or else a list of this value alone.
    var asList: JSONValue {
        if case .array = self { self } else { .array([self]) }
    }
}
