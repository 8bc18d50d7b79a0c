import RelayModel

/// What this relay knows of one shard of the service.
struct ShardStanding: Sendable, Hashable {
    let schema: String
    /// Whether this relay owns the store of the shard.
    let isOwn: Bool
    /// The state of the shard, as one word.
    var state = "unknown"
    /// The reason why calls to the shard cannot be answered; `nil` if they can.
    var obstacle: String?
    /// The owner of the shard's store, its epoch, and the address at which it is reached.
    var owner: String?
    var epoch: Int64?
    var address: String?
    /// The number of containers in the shard.
    var containers = 0
    /// The time since the shard was last seen; `nil` if it never was.
    var age: Duration?

    init(schema: String, isOwn: Bool) {
        self.schema = schema
        self.isOwn = isOwn
    }

    /// Records that the store was moved.
    ///
    /// If `heir` names another shard, calls go to the owner of that one. If it names this shard,
    /// the store was moved elsewhere, or is being moved.
    mutating func noteMoved(to heir: String) {
        (state, owner, epoch, address) = ("movedAway", nil, nil, nil)
        guard heir == schema else {
            (obstacle, containers) = (nil, 0)
            return
        }
        obstacle =
            "its store was moved away or is being moved: finish with belfry move, or remove it "
            + "from nodes.schemas"
    }
}

/// What administrative calls need of the shards of the service.
struct ShardAccess: Sendable {
    /// The shard of this relay's store.
    let own: String
    let standings: @Sendable () -> [ShardStanding]
    /// The containers of the other shards.
    let elsewhere: @Sendable () -> [(schema: String, keys: [ContainerKey])]
    /// Creates a container with the given closure unless another shard has it; the closure must
    /// call its check when it commits.
    let creating: @Sendable (ContainerKey, @escaping Making) async throws -> Void

    typealias Making =
        @Sendable (_ check: @escaping @Sendable () throws -> Void) async throws -> Void
}

/// The check of the shard that an administrative call names in its query.
struct ShardParameter: Sendable {
    /// The shards of the service; `nil` if the store is the only one.
    let shards: ShardAccess?

    /// Refuses a call that names another shard than the one that answers.
    ///
    /// - Throws: 400 that names the shards.
    func check(_ request: RelayRequest) throws(APIError) {
        guard let named = request.query["shard"] else { return }
        guard let shards else {
            throw APIError(
                .badRequest, "shard: this service has only one store (nodes.schemas is not set)")
        }
        guard named != shards.own else { return }
        let all = shards.standings().map(\.schema)
        guard all.contains(named) else {
            throw APIError(
                .badRequest,
                "shard: there is no shard \"\(named.shortened)\"; the shards are "
                    + all.joined(separator: ", "))
        }
        throw APIError(
            .badRequest,
            "shard: the requested container is in the shard \(shards.own), not in \(named)")
    }
}

/// The call that lists the shards of the service.
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
