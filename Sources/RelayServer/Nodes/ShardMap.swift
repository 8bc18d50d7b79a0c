import Crypto
import RelayModel
import StoragePostgreSQL

/// What a relay knows of the shards of its service, which decides to which of them a call goes.
///
/// It is a pure decision.
struct ShardMap: Sendable {
    /// The shard of the relay's own store.
    let own: String
    /// All shards, in the order of their names.
    let schemas: [String]
    private(set) var sights: [String: ShardSight] = [:]
    /// The shard of each container.
    private var places: [ContainerKey: String] = [:]
    /// Some of the containers that are in several shards, which is an error: a sentence for each.
    private(set) var conflicts: [String] = []
    /// Why the containers of all other shards are not known; `nil` if they are.
    private(set) var doubt: String?

    /// The maximum number of conflicts that are reported.
    private static let mostConflicts = 5

    /// Creates a map before anything is known.
    init(own: String, schemas: [String]) {
        self.own = own
        self.schemas = schemas.sorted()
        doubt = firstDoubt
    }

    /// Returns the map after `fresh` was seen; shards that are not in it stay as known before.
    func taking(_ fresh: [ShardSight]) -> ShardMap {
        var map = self
        var isOther = false
        for sight in fresh {
            isOther = isOther || sights[sight.schema]?.revision != sight.revision
            map.sights[sight.schema] = sight
        }
        if isOther { map.fill() }
        map.doubt = map.firstDoubt
        return map
    }

    private var firstDoubt: String? {
        for schema in schemas where schema != own {
            guard let sight = sights[schema] else {
                return "it may be \(schema), which has not been read yet"
            }
            if let doubt = sight.doubt { return "it may be \(schema): \(doubt)" }
        }
        return nil
    }

    /// Computes the shard of each container.
    ///
    /// If a container is in several shards, all relays agree on the first of them. A store that was
    /// moved elsewhere still contains its containers, but they count only if they are in no other
    /// shard.
    private mutating func fill() {
        places = [:]
        conflicts = []
        let moved = Set(schemas.filter { sights[$0]?.isMovedAway ?? false })
        for schema in schemas where !moved.contains(schema) { fill(from: schema, isMoved: false) }
        for schema in schemas where moved.contains(schema) { fill(from: schema, isMoved: true) }
    }

    private mutating func fill(from schema: String, isMoved: Bool) {
        for key in sights[schema]?.containers ?? [] {
            guard let other = places[key] else {
                places[key] = schema
                continue
            }
            if !isMoved, conflicts.count < Self.mostConflicts {
                conflicts.append(
                    "\(key) is in \(other) and in \(schema): calls go to \(other)")
            }
        }
    }

    /// Returns the other shard that handles a call; `nil` if the relay's own store does.
    func other(for subject: CallSubject) -> String? {
        let schema: String? =
            switch subject {
            case .container(let key): places[key]
            case .creation(let key, let named): places[key] ?? named ?? choice(for: key)
            case .shard(let named): named
            case .courier(let named): heir(of: named)
            case .session(let named): hasOwner(named) ? named : nil
            case .relay: nil
            }
        // The routes of the own store refuse a name that is not a shard.
        return schema.flatMap { $0 != own && schemas.contains($0) ? $0 : nil }
    }

    /// Returns whether a relay owns a shard, as far as is known.
    ///
    /// Console sessions ended with their owner, so an operator signs in again, wherever the call
    /// goes.
    private func hasOwner(_ schema: String) -> Bool {
        // A store that was moved away is not owned by a relay.
        if sights[schema]?.isMovedAway == true { return false }
        return switch sights[schema]?.state {
        case .unowned?, .absent?: false
        default: true
        }
    }

    /// Returns the shard that has a shard's store now: another one if the store was moved there.
    func heir(of schema: String) -> String {
        guard let sight = sights[schema], sight.isMovedAway else { return schema }
        // All of its containers moved together.
        return sight.containers.lazy.compactMap { places[$0] }.first { $0 != schema } ?? schema
    }

    /// Returns whether a call may be for a container in a shard whose containers are not known.
    ///
    /// The own store must not answer then that the container does not exist.
    func isDoubtful(_ subject: CallSubject) -> Bool {
        guard doubt != nil, case .container(let key) = subject else { return false }
        return places[key] == nil
    }

    /// Returns the shard for a new container if none was requested.
    ///
    /// Each shard gets a pseudorandom number for the container, and the highest one wins
    /// (rendezvous hashing). So all relays agree, shards get about equally many containers, and
    /// another shard moves no existing ones. A shard whose store was moved away gets none, because
    /// it has no owner.
    func choice(for key: ContainerKey) -> String {
        schemas.filter { !(sights[$0]?.isMovedAway ?? false) }
            .max { Self.number(of: $0, for: key) < Self.number(of: $1, for: key) } ?? own
    }

    private static func number(of schema: String, for key: ContainerKey) -> UInt64 {
        SHA256.hash(data: Array("\(schema) \(key)".utf8)).prefix(8)
            .reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The containers of other shards, in the order of the shards' names.
    var elsewhere: [(schema: String, keys: [ContainerKey])] {
        schemas.filter { $0 != own }.map { schema in
            let keys = sights[schema]?.containers ?? []
            guard sights[schema]?.isMovedAway ?? false else { return (schema, keys) }
            return (schema, keys.filter { places[$0] == schema })
        }
    }
}
