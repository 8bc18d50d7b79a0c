import Crypto
import RelayModel
import Storage

/// What the calls on records and zones have in common: who calls, in which database.
struct RecordCalls: Sendable {
    let clients: ClientAdmission
    let shadow: any Shadow
    /// The store that tokens are of.
    let store: UUIDBytes
    /// Where those wait who list much.
    let lists: ReaderLine
    let limits: RequestLimits

    /// A call on records of those who may own some.
    func route(
        _ method: String, _ path: String, patience: RelayRoute.Patience = .prompt,
        effect: RelayRoute.Effect? = nil,
        respond: @escaping @Sendable (RelayRequest, RecordCaller) async throws -> RelayAnswer
    ) -> RelayRoute {
        clients.route(
            method, RelayRoute.database + path, for: .owners, patience: patience, effect: effect
        ) { request, admitted in
            try await respond(request, try await caller(admitted))
        }
    }

    /// Who makes the call, and what there is to know of the database.
    private func caller(_ admitted: AdmittedCaller) async throws -> RecordCaller {
        let database = admitted.database
        let owner = database == .public ? nil : try admitted.user()
        let key = admitted.settings.key
        return RecordCaller(
            place: RecordPlace(container: key, database: database, owner: owner),
            user: admitted.caller.user, isServer: admitted.caller.proof != .apiToken,
            schema: try await shadow.schema(of: key), redirectURL: admitted.redirectURL,
            queryPlaces: admitted.settings.quotas.limits[.queries],
            store: store)
    }
}

/// Who calls, in which database, with which schema.
struct RecordCaller: Sendable {
    let place: RecordPlace
    let user: UserID?
    let isServer: Bool
    private(set) var schema: ContainerSchema
    let redirectURL: String
    /// Queries of the container at a time, where that is not as the configuration says.
    var queryPlaces: Int?
    /// The store that the places in tokens are of.
    let store: UUIDBytes

    /// The same caller, with what was learned since the schema was read.
    func knowing(_ additions: [RecordTypeDefinition]) -> RecordCaller {
        var caller = self
        for addition in additions {
            caller.schema.recordTypes[addition.name, default: addition].fields
                .merge(addition.fields) { known, _ in known }
        }
        return caller
    }

    var editor: RecordEditor { RecordEditor(userID: user, isServer: isServer) }

    /// Whether nobody is signed in, and somebody could be.
    var isNobody: Bool { user == nil && !isServer }

    /// What is refused to nobody, and may be granted to somebody.
    var authenticationRequired: APIError {
        APIError(
            .authenticationRequired, "request needs authorization",
            details: ["redirectURL": .string(redirectURL)])
    }
    /// Who asks, as far as places for queries go.
    var party: QueryParty { isServer ? .server : user.map { .user($0) } ?? .strangers }

    /// Whether the caller may know of a record.
    func mayRead(_ record: ShadowRecord) -> Bool {
        guard !isServer else { return true }
        if let readers = record.readers { return RecordChange.names(user, in: readers) }
        guard place.database == .public else { return true }
        guard let type = schema.recordTypes[record.recordType] else { return false }
        return type.readGrant.admits(user, createdBy: record.created.userID)
    }

    /// Refuses to create a record of `type` for who may not.
    ///
    /// - Throws: 421 if signing in would help, else 403.
    func checkCreation(of type: RecordTypeDefinition) throws(APIError) {
        guard place.database == .public, !isServer, !type.grants(.create, to: .world) else {
            return
        }
        guard user == nil || !type.grants(.create, to: .icloud) else { return }
        if user == nil {
            throw authenticationRequired
        }
        throw APIError(.accessDenied, "CREATE operation not permitted on \(type.name)")
    }

    // MARK: Zones

    /// Whose name as the owner of a zone is the same as none.
    var impliedOwner: UserID? { place.database.impliedOwner(place.owner) }

    /// The zone that a client means.
    func zoneID(_ stated: ZoneID) -> ZoneID { stated.implying(impliedOwner) }

    /// A zone as CloudKit's answers name it.
    func json(_ zoneID: ZoneID) -> JSONValue {
        var object = JSONObject()
        write(zoneID, to: &object)
        return .object(object)
    }

    /// Appends the members of a zone as CloudKit's answers name it.
    func write<Object: JSONObjectBuilder>(_ zoneID: ZoneID, to object: inout Object) {
        object.append("zoneName", text: zoneID.zoneName)
        object.append(
            "ownerRecordName",
            text: (zoneID.ownerRecordName ?? place.owner)?.rawValue ?? ZoneID.defaultOwner)
        object.append(
            "zoneType",
            text: zoneID.zoneName == ZoneID.defaultName ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE")
    }

    /// The zone in the member `zoneID`, the default one if there is none.
    ///
    /// - Throws: `JSONContractError`.
    func zoneID(_ reader: JSONReader, unless fallback: ZoneID = .default) throws -> ZoneID {
        guard let value = reader.value("zoneID") else { return fallback }
        return zoneID(try ZoneID(json: value, path: reader.path(of: "zoneID")))
    }

    /// The zone that an element of a list of zones means: its member `zoneID`, or itself.
    ///
    /// Clients write `{"zoneID": {"zoneName": …}}` and `{"zoneName": …}`.
    ///
    /// - Throws: `JSONContractError`.
    func listedZoneID(_ reader: JSONReader) throws -> ZoneID {
        guard reader.value("zoneID") == nil, reader.value("zoneName") != nil else {
            _ = try reader.require("zoneID", reader.value("zoneID"))
            return try zoneID(reader)
        }
        var object = JSONObject()
        for name in ["zoneName", "ownerRecordName", "ownerName"] {
            object[name] = reader.value(name)
        }
        return zoneID(try ZoneID(json: .object(object), path: reader.path))
    }

    // MARK: Tokens

    /// A token for a place in what changed, good for this database and `part` of this store only.
    func token(_ numbers: [UInt64], of part: String) -> String {
        let text = ([seal(of: part), StoreMark(store).text] + numbers.map { String($0) })
            .joined(separator: ":")
        return Base64.encode(Array(text.utf8))
    }

    /// The numbers of a token that ``token(_:of:)`` made; zeros without one.
    ///
    /// - Throws: 400 if it is another one's; with `changeTokenExpired` if it is of another store,
    ///   as after a backup was restored: that store's places are taken by other changes here.
    func numbers(_ token: String?, count: Int, of part: String) throws(APIError) -> [UInt64] {
        guard let token else { return Array(repeating: 0, count: count) }
        guard let bytes = Base64.decode(token) else { throw Self.foreignToken }
        // By bytes: as texts, two megabytes of combining marks are compared for half an hour.
        let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: count + 2)
        let numbers = parts.dropFirst(2).compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
        guard parts.count == count + 2, numbers.count == count,
            parts[0].elementsEqual(seal(of: part).utf8)
        else { throw Self.foreignToken }
        guard parts[1].elementsEqual(StoreMark(store).text.utf8) else {
            throw APIError.tokenExpired(
                "it was made before a backup was restored; begin again without one")
        }
        return numbers
    }

    private static let foreignToken = APIError(
        .badRequest,
        "the token was not made for this database and zone; begin again without one")

    private func seal(of part: String) -> String {
        let text =
            "\(place.container)/\(place.database.rawValue)/\(place.owner?.rawValue ?? "")/\(part)"
        return Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)).prefix(6))
    }
}

extension ZoneID {
    /// What names the zone in the seal of a token.
    var sealName: String { "\(ownerRecordName?.rawValue ?? "")/\(zoneName)" }
}
