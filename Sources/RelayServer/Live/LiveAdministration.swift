import Live
import RelayModel
import Storage

/// The operator's calls that list connected clients and groups.
struct LiveAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    /// `nil` if the relay does not follow the log.
    let present: LiveAccess?

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listLiveClients, respond: clients),
            AdministrationRoute(.listLiveGroups, respond: groups),
        ]
    }

    private func clients(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let limit = try request.limit()
        let clients =
            await present?.engine.clientStates(
                of: container, after: try request.number("after") ?? 0, limit: limit) ?? []
        return AdministrationCall.listLiveClients.answer(
            clients.map(Self.client.json),
            next: clients.count < limit
                ? nil : clients.last.map { ("after", .string(String($0.number))) })
    }

    private func groups(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let limit = try request.limit()
        let after = UInt32(clamping: try request.number("after") ?? 0)
        let groups =
            await present?.engine.groupStates(of: container, after: after, limit: limit) ?? []
        return AdministrationCall.listLiveGroups.answer(
            groups.map(Self.group.json),
            next: groups.count < limit
                ? nil : groups.last.map { ("after", .string(String($0.number))) })
    }

    // MARK: Rows

    static let client = AdministrationRow<LiveClientState>(
        [
            .always("client", .text) { .string(String($0.number)) },
            .maybe("userRecordName", .text) { $0.reader.userName },
            .always("isServer", .flag) { .bool($0.reader == .server) },
            .maybe("deviceID", .text) { $0.device.map { .string($0.rawValue) } },
            .always("version", .integer) { .integer($0.version) },
            .always("queries", .integer) { .integer(Int64($0.queries)) },
            .always("waiting", .integer) { .integer(Int64($0.waiting)) },
            .always("isLagging", .flag) { .bool($0.isLagging) },
        ],
        columns: [
            .init("client", "client"), .init("user", "userRecordName"),
            .init("device", "deviceID"), .init("queries", "queries"),
            .init("waiting", "waiting"), .init("lagging", "isLagging"),
        ])

    static let group = AdministrationRow<LiveGroupState>(
        [
            .always("group", .integer) { .integer(Int64($0.number)) },
            .always("kind", .words(of: LiveQuery.Kind.self)) {
                .string($0.query.kind.rawValue)
            },
            .maybe("recordType", .text) { $0.query.recordType.map { .string($0.rawValue) } },
            .always("database", .words(of: DatabaseScope.self)) {
                .string($0.query.place.database.rawValue)
            },
            .maybe("canonicalPredicate", .text) {
                guard case .query(let query, _) = $0.query.subscription.scope else { return nil }
                return .string(query.canonical)
            },
            .maybe("userRecordName", .text) { $0.reader?.userName },
            .always("clients", .integer) { .integer(Int64($0.clients)) },
            .always("waiting", .integer) { .integer(Int64($0.waiting)) },
            .maybe("members", .integer) { $0.members.map { .integer(Int64($0)) } },
            .always("bytes", .integer) { .integer(Int64($0.bytes)) },
        ],
        columns: [
            .init("group", "group"), .init("kind", "kind"), .init("type", "recordType"),
            .init("condition", "canonicalPredicate"), .init("of", "userRecordName"),
            .init("clients", "clients"), .init("waiting", "waiting"),
            .init("members", "members"), .init("bytes", "bytes"),
        ])
}

private extension LiveReader {
    var userName: JSONValue? {
        guard case .user(let user) = self else { return nil }
        return .string(user.rawValue)
    }
}

extension AdministrationCall {
    package static let listLiveClients = AdministrationCall(
        listing: "clients", LiveAdministration.client, at: "\(container)/live/clients",
        "List connected clients, with how many queries they have and whether they lag.",
        query: [.maybe("after", .count), .limit], next: .maybe("after", .text))

    package static let listLiveGroups = AdministrationCall(
        listing: "groups", LiveAdministration.group, at: "\(container)/live/groups",
        "List what is shown to connected clients; queries that show the same are one group.",
        query: [.maybe("after", .count), .limit], next: .maybe("after", .text))
}
