import RelayModel

extension RowPlaces {
    /// The members of a mapping that name places.
    static let members = PlaceRole.allCases.map(\.rawValue) + ["origin"]
    /// The members of `origin`.
    static let originMembers = ["device", "user"]

    /// Parses the places that apply to all tables.
    init(reader: JSONReader) throws(JSONContractError) {
        self.init()
        for role in PlaceRole.allCases { self[role] = try reader.place(of: role) }
        guard let origin = try reader.origin() else { return }
        originDevice = origin.device ?? originDevice
        originUser = origin.user ?? []
    }

    /// Writes the places into the mapping's `object`.
    func write(into object: inout JSONObject) {
        for role in PlaceRole.allCases { object[role.rawValue] = self[role]?.json }
        object["origin"] = [
            "device": .array(originDevice.map(\.json)), "user": .array(originUser.map(\.json)),
        ]
    }
}

extension TablePlaces {
    /// Parses the places of one table.
    ///
    /// A null means that its rows have no such place.
    init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(RowPlaces.members)
        guard !reader.object.members.isEmpty else {
            throw JSONContractError(
                path: path,
                reason: "must name at least one of \(RowPlaces.members.joined(separator: ", "))")
        }
        for role in PlaceRole.allCases {
            if let place = try reader.place(of: role) {
                own[role] = .place(place)
            } else if reader.object[role.rawValue] == .null {
                own[role] = .nowhere
            }
        }
        if reader.object["origin"] == .null {
            originDevice = []
            originUser = []
        } else if let origin = try reader.reader("origin") {
            try readOrigin(origin)
        }
    }

    private mutating func readOrigin(_ origin: JSONReader) throws(JSONContractError) {
        try origin.allowOnly(RowPlaces.originMembers)
        // An empty object would be stored as nothing, which could not be read again.
        guard !origin.object.members.isEmpty else {
            throw JSONContractError(
                path: origin.path,
                reason: "must name at least one of "
                    + "\(RowPlaces.originMembers.joined(separator: ", "))")
        }
        originDevice = try origin.object["device"] == .null ? [] : origin.places("device")
        originUser = try origin.object["user"] == .null ? [] : origin.places("user")
    }

    /// The JSON form of the places.
    var json: JSONValue {
        var object: JSONObject = [:]
        for role in PlaceRole.allCases {
            switch own[role] {
            case .place(let place)?: object[role.rawValue] = place.json
            case .nowhere?: object[role.rawValue] = .null
            case nil: break
            }
        }
        var origin: JSONObject = [:]
        origin["device"] = originDevice.map { .array($0.map(\.json)) }
        origin["user"] = originUser.map { .array($0.map(\.json)) }
        if !origin.members.isEmpty { object["origin"] = .object(origin) }
        return .object(object)
    }
}

private extension JSONReader {
    func place(of role: PlaceRole) throws(JSONContractError) -> ValuePlace? {
        let place = try place(role.rawValue)
        if role == .database, case .constant(let word)? = place,
            DatabaseScope(rawValue: word) == nil
        {
            throw failure(
                "database.constant", "must be \"public\", \"private\" or \"shared\"")
        }
        return place
    }

    /// Returns the places of the originating device and user; `nil` if they are not named.
    func origin() throws(JSONContractError)
        -> (device: [ValuePlace]?, user: [ValuePlace]?)?
    {
        guard let origin = try reader("origin") else { return nil }
        try origin.allowOnly(RowPlaces.originMembers)
        return (try origin.places("device"), try origin.places("user"))
    }
}
