import Crypto
import RelayModel
import StoragePostgreSQL

/// What a relay knows of the shards of its service, and which of them a call is for: a pure
/// decision.
struct ShardMap: Sendable {
    /// The shard of the relay's own store.
    let own: String
    /// All of them, in the order of their names.
    let schemas: [String]
    private(set) var sights: [String: ShardSight] = [:]
    /// Where containers lie.
    private var places: [ContainerKey: String] = [:]
    /// Some of those that lie in several shards, which should not be: a sentence for each.
    private(set) var conflicts: [String] = []
    /// Why it is not known what lies in all other shards; `nil` if it is.
    private(set) var doubt: String?

    /// How many conflicts are told.
    private static let mostConflicts = 5

    /// Nothing is known yet.
    init(own: String, schemas: [String]) {
        self.own = own
        self.schemas = schemas.sorted()
        doubt = firstDoubt
    }

    /// What is known after `fresh` was seen; what was not seen is known as before.
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
                return "it may be \(schema), which was not seen yet"
            }
            if let doubt = sight.doubt { return "it may be \(schema): \(doubt)" }
        }
        return nil
    }

    /// Says anew where containers lie.
    ///
    /// Where one lies in several shards, all relays agree on the first of them. A store that was
    /// moved elsewhere has its containers still: they are there only if they are nowhere else.
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
                    "\(key) lies in \(other) and in \(schema): calls go to \(other)")
            }
        }
    }

    /// The shard of another store that works a call; `nil` if the relay's own store does.
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
        // What is no shard is refused by the routes of the own store.
        return schema.flatMap { $0 != own && schemas.contains($0) ? $0 : nil }
    }

    /// Whether a relay owns a shard, as far as is known.
    ///
    /// Its sessions ended with the owner: whoever had one signs in where they are.
    private func hasOwner(_ schema: String) -> Bool {
        // A move that has the store is no relay.
        if sights[schema]?.isMovedAway == true { return false }
        return switch sights[schema]?.state {
        case .unowned?, .absent?: false
        default: true
        }
    }

    /// The shard in which a shard's store is now: another one if it was moved there.
    func heir(of schema: String) -> String {
        guard let sight = sights[schema], sight.isMovedAway else { return schema }
        // All that it had went together.
        return sight.containers.lazy.compactMap { places[$0] }.first { $0 != schema } ?? schema
    }

    /// Whether a call may be for a shard of which it is not known what lies there: the own store
    /// must not say that there is no such container.
    func isDoubtful(_ subject: CallSubject) -> Bool {
        guard doubt != nil, case .container(let key) = subject else { return false }
        return places[key] == nil
    }

    /// The shard for a container of which nobody says where it is to lie.
    ///
    /// Each shard draws a number for it, and the highest has it: so all relays say the same, shards
    /// get about as many each, and one more shard moves none that are there (rendezvous hashing).
    /// One whose store was moved away gets none: nobody owns it.
    func choice(for key: ContainerKey) -> String {
        schemas.filter { !(sights[$0]?.isMovedAway ?? false) }
            .max { Self.number(of: $0, for: key) < Self.number(of: $1, for: key) } ?? own
    }

    private static func number(of schema: String, for key: ContainerKey) -> UInt64 {
        SHA256.hash(data: Array("\(schema) \(key)".utf8)).prefix(8)
            .reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// What lies in other shards, in the order of their names.
    var elsewhere: [(schema: String, keys: [ContainerKey])] {
        schemas.filter { $0 != own }.map { schema in
            let keys = sights[schema]?.containers ?? []
            guard sights[schema]?.isMovedAway ?? false else { return (schema, keys) }
            return (schema, keys.filter { places[$0] == schema })
        }
    }
}
