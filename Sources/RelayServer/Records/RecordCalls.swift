import Crypto
import RelayModel
import Storage

/// The common part of all calls on records and zones: the caller and its database.
struct RecordCalls: Sendable {
    let clients: ClientAdmission
    let shadow: any Shadow
    /// The identity of the store that tokens belong to.
    let store: UUIDBytes
    /// The queue for calls that list much.
    let lists: ReaderLine
    /// Writes answers with records, which may be long.
    let answers: LongAnswers
    let limits: RequestLimits

    /// Returns the route of a call on records, for callers that may own records.
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

    /// Returns the caller, with what is known about its database.
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

/// A caller with its database and schema.
struct RecordCaller: Sendable {
    let place: RecordPlace
    let user: UserID?
    let isServer: Bool
    private(set) var schema: ContainerSchema
    let redirectURL: String
    /// The container's limit on concurrent queries, if it differs from the configuration.
    var queryPlaces: Int?
    /// The identity of the store that the positions in tokens belong to.
    let store: UUIDBytes

    /// Returns the same caller, with what was learned since the schema was read.
    func knowing(_ additions: [RecordTypeDefinition]) -> RecordCaller {
        var caller = self
        for addition in additions {
            caller.schema.recordTypes[addition.name, default: addition].fields
                .merge(addition.fields) { known, _ in known }
        }
        return caller
    }

    var editor: RecordEditor { RecordEditor(userID: user, isServer: isServer) }

    /// Whether no user is signed in, although one could be.
    var isNobody: Bool { user == nil && !isServer }

    /// The error for a caller without a user, if a user might be allowed to do it.
    var authenticationRequired: APIError {
        APIError(
            .authenticationRequired, "request needs authorization",
            details: ["redirectURL": .string(redirectURL)])
    }
    /// The party that places for queries are counted for.
    var party: QueryParty { isServer ? .server : user.map { .user($0) } ?? .strangers }

    /// Returns whether the caller may read a record.
    func mayRead(_ record: ShadowRecord) -> Bool {
        guard !isServer else { return true }
        if let readers = record.readers { return RecordChange.names(user, in: readers) }
        guard place.database == .public else { return true }
        guard let type = schema.recordTypes[record.recordType] else { return false }
        return type.readGrant.admits(user, createdBy: record.created.userID)
    }

    /// Refuses the creation of a record of `type` unless the caller may create one.
    ///
    /// - Throws: 421 if signing in might help, otherwise 403.
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

    /// The user whose name as the owner of a zone means the same as no owner.
    var impliedOwner: UserID? { place.database.impliedOwner(place.owner) }

    /// Returns the zone that a client means.
    func zoneID(_ stated: ZoneID) -> ZoneID { stated.implying(impliedOwner) }

    /// Returns a zone in the form of CloudKit's answers.
    func json(_ zoneID: ZoneID) -> JSONValue {
        var object = JSONObject()
        write(zoneID, to: &object)
        return .object(object)
    }

    /// Appends the members of a zone in the form of CloudKit's answers.
    func write<Object: JSONObjectBuilder>(_ zoneID: ZoneID, to object: inout Object) {
        object.append("zoneName", text: zoneID.zoneName)
        object.append(
            "ownerRecordName",
            text: (zoneID.ownerRecordName ?? place.owner)?.rawValue ?? ZoneID.defaultOwner)
        object.append(
            "zoneType",
            text: zoneID.zoneName == ZoneID.defaultName ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE")
    }

    /// Returns the zone in the member `zoneID`, or the default one.
    ///
    /// - Throws: `JSONContractError`.
    func zoneID(_ reader: JSONReader, unless fallback: ZoneID = .default) throws -> ZoneID {
        guard let value = reader.value("zoneID") else { return fallback }
        return zoneID(try ZoneID(json: value, path: reader.path(of: "zoneID")))
    }

    /// Returns the zone of an element in a list of zones, from its member `zoneID` or from the
    /// element itself.
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

    /// Returns a token for a place among the changes, valid only for this database, this store and
    /// `part`.
    func token(_ numbers: [UInt64], of part: String) -> String {
        let text = ([seal(of: part), StoreMark(store).text] + numbers.map { String($0) })
            .joined(separator: ":")
        return Base64.encode(Array(text.utf8))
    }

    /// Returns the numbers of a token that ``token(_:of:)`` made; zeros without a token.
    ///
    /// - Throws: 400 if it was made for something else, with `changeTokenExpired` if it is of
    ///   another store. After a backup was restored, that store's positions belong to other
    ///   changes.
    func numbers(_ token: String?, count: Int, of part: String) throws(APIError) -> [UInt64] {
        guard let token else { return Array(repeating: 0, count: count) }
        guard let bytes = Base64.decode(token) else { throw Self.foreignToken }
        // By bytes: comparing two megabytes of combining marks as texts takes half an hour.
        let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: count + 2)
        let numbers = parts.dropFirst(2).compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
        guard parts.count == count + 2, numbers.count == count,
            parts[0].elementsEqual(seal(of: part).utf8)
        else { throw Self.foreignToken }
        guard parts[1].elementsEqual(StoreMark(store).text.utf8) else {
            throw APIError.tokenExpired(
                "it was made before a backup was restored; start again without a syncToken")
        }
        return numbers
    }

    private static let foreignToken = APIError(
        .badRequest,
        "the token belongs to another database or zone; start again without a token")

    private func seal(of part: String) -> String {
        let text =
            "\(place.container)/\(place.database.rawValue)/\(place.owner?.rawValue ?? "")/\(part)"
        return Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)).prefix(6))
    }
}

extension ZoneID {
    /// The name of the zone in the seal of a token.
    var sealName: String { "\(ownerRecordName?.rawValue ?? "")/\(zoneName)" }
}
