import PostgresLink

/// The running relays of several stores of one database, as one look found them.
package struct StoreView: Sendable, Hashable {
    /// One of these relays.
    package struct Relay: Sendable, Hashable {
        /// The schema of its store.
        let schema: String
        /// Its name.
        let name: String
        /// The machine on which it runs; `nil` if it does not say, as a relay of an older version
        /// does.
        let machine: String?
        /// The stores that it spreads with other relays, in the form of ``StoreView/list(of:)``;
        /// `nil` if it takes no part in that.
        let stores: String?
        /// Whether it owns the store.
        let isOwner: Bool
        /// Whether it has loaded the store's state, so that it can continue at once as the owner.
        let isWarm: Bool

        package init(
            schema: String, name: String, machine: String?, stores: String?, isOwner: Bool = false,
            isWarm: Bool = false
        ) {
            self.schema = schema
            self.name = name
            self.machine = machine
            self.stores = stores
            self.isOwner = isOwner
            self.isWarm = isWarm
        }
    }

    /// The schemas of the stores, sorted.
    package let schemas: [String]
    /// The relays that announced themselves recently, and the owners whose lease is valid.
    package let relays: Set<Relay>

    package init(of schemas: [String], _ relays: Set<Relay>) {
        self.schemas = schemas.sorted()
        self.relays = relays
    }

    /// Returns the list of schemas in the form that relays publish.
    static func list(of schemas: [String]) -> String { schemas.sorted().joined(separator: ",") }

    /// Why no store may be moved; `nil` if all relays take part and have the same list.
    ///
    /// Two relays with different lists would hand a store to each other for ever. And a relay that
    /// does not wait for the machine that should own a store would take it back.
    package var hindrance: String? {
        let list = Self.list(of: schemas)
        let ordered = relays.sorted { ($0.schema, $0.name) < ($1.schema, $1.name) }
        for relay in ordered where relay.machine == nil || relay.stores != list {
            let who = "\(relay.name.isEmpty ? "the owner" : relay.name) of schema \(relay.schema)"
            if relay.machine == nil {
                return "\(who) does not say on which machine it is, probably because its version "
                    + "is older: upgrade it"
            }
            guard relay.stores != nil else {
                return "\(who) takes no part: give all relays the same nodes.schemas, and set "
                    + "nodes.balance to off in none"
            }
            return "\(who) has other nodes.schemas: give all relays the same"
        }
        return nil
    }

    /// The assignment of the stores to machines.
    ///
    /// A machine can own the stores that it already owns, and those whose state one of its relays
    /// has loaded.
    package var spread: StoreSpread {
        var able: [String: Set<String>] = [:]
        var owners: [String: String] = [:]
        for relay in relays where relay.isOwner || relay.isWarm {
            guard let machine = relay.machine else { continue }
            able[relay.schema, default: []].insert(machine)
            if relay.isOwner { owners[relay.schema] = machine }
        }
        return StoreSpread(able: able, owners: owners)
    }

    /// Returns the machine that should own the store in `schema`; `nil` if none can, or there is a
    /// hindrance.
    package func machine(for schema: String) -> String? {
        hindrance == nil ? spread.machines[schema] : nil
    }

    /// Returns whether a relay owns the store in `schema`.
    package func isOwned(_ schema: String) -> Bool {
        relays.contains { $0.schema == schema && $0.isOwner }
    }

    /// Returns the machine that owns the store in `schema`; `nil` if it is unknown.
    package func owner(of schema: String) -> String? {
        relays.first { $0.schema == schema && $0.isOwner }?.machine
    }
}

extension StoreView {
    /// The greatest age of a running relay's last announcement: three beats.
    ///
    /// This is shorter than the time after which a relay is listed as silent, because a store is
    /// handed over to it.
    private static let silence = Ownership.renewal * 3
    /// The limit for locks: a migration of another store must not keep a lease from being renewed.
    private static let locks = "SET LOCAL lock_timeout = '200ms'"
    /// How long a statement may take: two of them end before the lease does.
    private static let patience = Ownership.renewal * 3 / 2

    /// Queries the relays of `schemas` once.
    ///
    /// - Throws: ``PostgresError``, also if a store is of an older version.
    static func look(at schemas: [String], _ connection: PostgresConnection) throws -> StoreView {
        let there = try found(schemas, connection)
        guard !there.isEmpty else { return StoreView(of: schemas, []) }
        return try ask(statement(about: there), of: schemas, connection)
    }

    /// Returns the schemas that have a table of relays, in order.
    static func found(
        _ schemas: [String], _ connection: PostgresConnection
    ) throws -> [String] {
        let names = schemas.map(\.quotedText).joined(separator: ", ")
        let rows = try connection.query(
            """
            SELECT space.nspname FROM pg_catalog.pg_namespace AS space
            JOIN pg_catalog.pg_class AS entity ON entity.relnamespace = space.oid
            WHERE entity.relname = 'relaynode' AND space.nspname IN (\(names)) ORDER BY 1
            """, within: patience)
        return rows.compactMap { $0[0] }
    }

    /// Returns the SQL that selects the relays of these stores.
    static func statement(about schemas: [String]) -> String {
        schemas.map { question(about: $0) }.joined(separator: " UNION ALL ")
    }

    /// Runs such a statement and returns the relays of `schemas`.
    static func ask(
        _ statement: String, of schemas: [String], _ connection: PostgresConnection
    ) throws -> StoreView {
        let rows = try run(statement, connection)
        let relays = rows.map { row in
            Relay(
                schema: row[0] ?? "", name: row[1] ?? "", machine: row[2], stores: row[3],
                isOwner: row[4] == "t", isWarm: row[5] == "t")
        }
        return StoreView(of: schemas, Set(relays))
    }

    /// Runs a statement with a short limit for locks.
    @discardableResult static func run(
        _ statement: String, _ connection: PostgresConnection
    ) throws -> [[String?]] {
        // Statements in one text are one transaction.
        try connection.query("\(locks); \(statement)", within: patience)
    }

    /// Returns the SQL for one store; a move that owns the store is not a relay.
    private static func question(about schema: String) -> String {
        """
        SELECT \(schema.quotedText), node.name, node.machine, node.stores,
            ownership.owner IS NOT NULL, coalesce(node.standby = 'warm', false)
        FROM \(schema.quotedName).relayNode AS node FULL JOIN (
            SELECT owner FROM \(schema.quotedName).ownership
            WHERE shard = 0 AND NOT starts_with(owner, \(StoreClaimant.movePrefix.quotedText))
                AND leaseUntil > clock_timestamp()) AS ownership
            ON ownership.owner = node.session
        WHERE ownership.owner IS NOT NULL OR \(RelayNodes.isSeen("node.seen", within: silence))
        """
    }
}
