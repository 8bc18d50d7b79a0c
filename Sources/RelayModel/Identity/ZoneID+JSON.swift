extension ZoneID {
    /// Reads a zone ID from its wire form.
    ///
    /// The form is a dictionary with `zoneName` and `ownerRecordName` (`ownerName` in CloudKit's
    /// live service), or the bare name.
    ///
    /// - Throws: ``JSONContractError`` if it is neither, or if the name is not allowed.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        var name: String?
        var owner: UserID?
        if case .string(let text) = json {
            name = text
        } else {
            let reader = try JSONReader(json, path: path)
            try reader.allowOnly(["zoneName", "ownerRecordName", "ownerName", "zoneType"])
            name = try reader.string("zoneName")
            owner = try reader.identifier(
                reader.value("ownerRecordName") == nil ? "ownerName" : "ownerRecordName")
        }
        guard let name else {
            throw JSONContractError(path: path, reason: "zoneName is required")
        }
        guard let zoneID = ZoneID(zoneName: name, ownerRecordName: owner) else {
            throw JSONContractError(
                path: path, reason: "not a zone name of 1 to \(Limits.maximumNameBytes) bytes")
        }
        self = zoneID
    }

    /// The wire form: a dictionary with `zoneName` and, if there is an owner, `ownerRecordName`.
    public var json: JSONValue {
        var object: JSONObject = ["zoneName": .string(zoneName)]
        object["ownerRecordName"] = ownerRecordName.map { .string($0.rawValue) }
        return .object(object)
    }
}
