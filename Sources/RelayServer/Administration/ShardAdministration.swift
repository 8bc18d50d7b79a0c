import RelayModel

/// What a relay knows of one shard of its service.
struct ShardStanding: Sendable, Hashable {
    let schema: String
    /// Whether it is the shard of the relay's own store.
    let isOwn: Bool
    /// How it is with it, as one word.
    var state = "unknown"
    /// Why nobody can be asked there; `nil` if somebody can.
    var obstacle: String?
    /// Who owns it, under which number, and where it is reached.
    var owner: String?
    var epoch: Int64?
    var address: String?
    /// How many containers lie there.
    var containers = 0
    /// How long ago it was seen last; `nil` if it never was.
    var age: Duration?

    init(schema: String, isOwn: Bool) {
        self.schema = schema
        self.isOwn = isOwn
    }

    /// Says that the store was moved: to the shard `heir`, whose owner is asked, or elsewhere if
    /// that is the shard itself.
    mutating func noteMoved(to heir: String) {
        (state, owner, epoch, address) = ("movedAway", nil, nil, nil)
        guard heir == schema else {
            (obstacle, containers) = (nil, 0)
            return
        }
        obstacle =
            "its store was moved away, or is being moved: finish with belfry move, or take it out "
            + "of nodes.schemas"
    }
}

/// What administrative calls need of the shards of the service.
struct ShardAccess: Sendable {
    /// The shard of the relay's own store.
    let own: String
    let standings: @Sendable () -> [ShardStanding]
    /// The containers of other shards.
    let elsewhere: @Sendable () -> [(schema: String, keys: [ContainerKey])]
    /// Makes a container by what is given, unless a shard has it; its check is for the commit.
    let creating: @Sendable (ContainerKey, @escaping Making) async throws -> Void

    typealias Making =
        @Sendable (_ check: @escaping @Sendable () throws -> Void) async throws -> Void
}

/// The shard that an administrative call names in its parameters.
struct ShardParameter: Sendable {
    /// `nil` where the store is the only one.
    let shards: ShardAccess?

    /// Refuses a call that is meant for another shard than the one that answers.
    ///
    /// - Throws: 400 that names the shards.
    func check(_ request: RelayRequest) throws(APIError) {
        guard let named = request.query["shard"] else { return }
        guard let shards else {
            throw APIError(.badRequest, "shard: this relay's store is the only one (nodes.schemas)")
        }
        guard named != shards.own else { return }
        let all = shards.standings().map(\.schema)
        guard all.contains(named) else {
            throw APIError(
                .badRequest,
                "shard: there is no shard \"\(named.shortened)\"; there are "
                    + all.joined(separator: ", "))
        }
        throw APIError(
            .badRequest,
            "shard: what was asked for lies in \(shards.own), not in \(named): a container stays "
                + "in its shard")
    }
}

/// The shards of the service.
struct ShardAdministration: AdministrationTable {
    let shards: ShardAccess?

    var routes: [AdministrationRoute] { [AdministrationRoute(.listShards, respond: list)] }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        AdministrationCall.listShards.answer(
            (shards?.standings() ?? []).map(AdministrationRows.shard.json))
    }
}

extension AdministrationRows {
    static let shard = AdministrationRow<ShardStanding>(
        [
            .always("shard", .text) { .string($0.schema) },
            .always("own", .flag) { .bool($0.isOwn) },
            .always("state", .text) { .string($0.state) },
            .maybe("reason", .text) { $0.obstacle.map { .string($0) } },
            .maybe("owner", .text) { $0.owner.map { .string($0) } },
            .maybe("epoch", .integer) { $0.epoch.map { .integer($0) } },
            .maybe("address", .text) { $0.address.map { .string($0) } },
            .always("containers", .count) { .integer(Int64($0.containers)) },
            .maybe("ageMilliseconds", .count) {
                $0.age.map { .integer(Int64($0 / .milliseconds(1))) }
            },
        ],
        columns: [
            .init("shard", "shard"), .init("state", "state"), .init("owner", "owner"),
            .init("epoch", "epoch"), .init("at", "address"), .init("containers", "containers"),
            .init("seen ms ago", "ageMilliseconds"), .init("reason", "reason"),
        ])
}
