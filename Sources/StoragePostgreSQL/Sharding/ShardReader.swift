import PostgresLink
import RelayModel
import Storage

/// Reads the published state of a service's shards, on a connection of its own, for one thread.
///
/// It remembers what it has read, so that a look queries only new containers. One statement, which
/// is planned once, reads all shards. If it fails, each shard is read alone, so that one whose
/// tables are just being changed does not hide the others.
final class ShardReader {
    /// What is known of a shard.
    private struct Shard {
        var schema: ShardSchema?
        var owner: StoreOwner?
        var containers: [ContainerKey] = []
        /// Whether these are all of them.
        var isRead = false
        var isMovedAway = false
        var revision = 0
        /// The ID of the last container that is known.
        var last: Int64 = 0
        /// The error of this shard alone.
        var failure: String?
        /// Whether it was read in this look.
        var isSeen = true

        var state: ShardSight.State {
            guard let schema else { return .absent }
            if let obstacle = schema.obstacle { return obstacle }
            if let failure { return .unreadable(failure) }
            return owner.map { .owned($0) } ?? .unowned
        }

        /// Forgets the containers, so that all are read again.
        mutating func forget() {
            (containers, isRead, isMovedAway, last) = ([], false, false, 0)
            revision += 1
        }
    }

    private let session: PostgresSession
    private let schemas: [String]
    private var shards: [Shard]
    private var connection: PostgresConnection?
    /// The indices of the shards that the prepared statement reads; `nil` if none is prepared.
    private var prepared: [Int]?
    private var surveyed: Duration?
    private var counted: Duration?

    /// How often the existing schemas are queried; more often while one cannot be read.
    private static let surveys = (usual: Duration.seconds(30), short: Duration.seconds(1))
    /// How often containers are counted, which reveals those that a move brought or took.
    private static let counts = Duration.seconds(10)
    /// The maximum number of a shard's containers in one answer.
    private static let page = 1000
    /// The limit for locks, because a migration locks a shard's tables and the other shards must
    /// not wait for it.
    private static let limits = "SET lock_timeout = '250ms'"
    private static let patience = Duration.seconds(3)

    init(_ session: PostgresSession, _ schemas: [String]) {
        self.session = session
        self.schemas = schemas
        shards = schemas.map { _ in Shard() }
    }

    /// Reads all shards, and returns their present state.
    ///
    /// - Throws: ``StorageError`` if the server cannot be queried.
    func look() throws -> [ShardSight] {
        do {
            let connection = try connected()
            for number in shards.indices { shards[number].isSeen = true }
            try survey(connection)
            do {
                try count(connection)
                try readAll(connection)
            } catch let error as PostgresError where error.verdict != .lost {
                surveyed = nil
                for number in readable { try readAlone(number, connection) }
            }
        } catch let error as PostgresError {
            connection = nil
            throw error.opening(session.place)
        }
        return zip(schemas, shards).compactMap { schema, shard in
            guard shard.isSeen else { return nil }
            return ShardSight(
                schema: schema, state: shard.state, containers: shard.containers,
                isRead: shard.isRead, isMovedAway: shard.isMovedAway, revision: shard.revision)
        }
    }

    private func connected() throws -> PostgresConnection {
        if let connection, session.isCurrent(connection) { return connection }
        let connection = try session.connect()
        try connection.query(Self.limits)
        (prepared, surveyed) = (nil, nil)
        self.connection = connection
        return connection
    }

    // MARK: Which are there

    private var readable: [Int] {
        shards.indices.filter { shards[$0].schema.map { $0.obstacle == nil } ?? false }
    }

    private func survey(_ connection: PostgresConnection) throws {
        let now = session.watch()
        let pause = readable.count == shards.count ? Self.surveys.usual : Self.surveys.short
        if let surveyed, now - surveyed < pause { return }
        let before = readable
        let found = try ShardSchema.found(schemas, connection)
        for (number, schema) in schemas.enumerated() {
            let there = found[schema]
            // A schema that was dropped and created again numbers its containers again.
            if shards[number].schema?.identity != there?.identity { shards[number].forget() }
            shards[number].schema = there
            shards[number].failure = nil
        }
        surveyed = now
        guard readable != before || prepared == nil else { return }
        if prepared != nil { try connection.query("DEALLOCATE belfryShards") }
        prepared = nil
    }

    // MARK: What they show

    private func readAll(_ connection: PostgresConnection) throws {
        let numbers = readable
        guard !numbers.isEmpty else { return }
        if prepared == nil {
            let parts = numbers.enumerated().map { place, number in
                part(number, above: "$1[\(place + 1)]")
            }
            try connection.query(
                "PREPARE belfryShards (bigint[]) AS " + parts.joined(separator: " UNION ALL "))
            prepared = numbers
        }
        // One look reads everything, page by page.
        for _ in 0...(ShardSight.mostContainers / Self.page) {
            let places = numbers.map { "\(shards[$0].last)" }.joined(separator: ",")
            let rows = try connection.query(
                "EXECUTE belfryShards ('{\(places)}')", within: Self.patience)
            guard take(rows, of: numbers) else { return }
        }
    }

    /// Reads one shard; its failure does not affect the others.
    private func readAlone(_ number: Int, _ connection: PostgresConnection) throws {
        do {
            let rows = try connection.query(
                part(number, above: "\(shards[number].last)"), within: Self.patience)
            _ = take(rows, of: [number])
        } catch let error as PostgresError where error.verdict == .busy {
            shards[number].isSeen = false
        } catch let error as PostgresError where error.verdict != .lost {
            shards[number].failure = error.message
        }
    }

    /// Returns the SQL that reads one shard: its owner, and the containers with an ID above
    /// `place`.
    private func part(_ number: Int, above place: String) -> String {
        let schema = schemas[number].quotedName
        // Qualified with the table: the selected `id` is a text, and would be ordered as text.
        return """
            (SELECT 'owner'::text, '\(number)'::text, name::text, epoch::text, address::text,
                pass::text
            FROM \(schema).ownership WHERE shard = 0 AND owner IS NOT NULL AND \(Ownership.isHeld))
            UNION ALL
            (SELECT 'container'::text, '\(number)'::text, name::text, environment::text, id::text,
                NULL::text
            FROM \(schema).container
            WHERE container.id > \(place) ORDER BY container.id LIMIT \(Self.page))
            """
    }

    /// Stores the rows that were read of these shards; returns whether there may be more.
    private func take(_ rows: [[String?]], of numbers: [Int]) -> Bool {
        var fresh: [Int: Int] = [:]
        for number in numbers { shards[number].owner = nil }
        for row in rows {
            guard row.count == 6, let number = row[1].flatMap({ Int($0) }),
                shards.indices.contains(number)
            else { continue }
            if row[0] == "owner" {
                let endpoint = row[4].flatMap { address in
                    row[5].map { StoreEndpoint(address: address, pass: $0) }
                }
                shards[number].owner = StoreOwner(
                    name: row[2] ?? "", epoch: row[3].flatMap { Int64($0) } ?? 0,
                    endpoint: endpoint)
            } else if let last = row[4].flatMap({ Int64($0) }) {
                fresh[number, default: 0] += 1
                shards[number].last = last
                add(ContainerKey(name: row[2], environment: row[3]), to: number)
            }
        }
        for number in fresh.keys { shards[number].revision += 1 }
        for number in numbers where fresh[number, default: 0] < Self.page {
            shards[number].isRead = true
        }
        return fresh.values.contains(Self.page)
    }

    private func add(_ key: ContainerKey?, to number: Int) {
        if let key { shards[number].containers.append(key) }
        if shards[number].containers.count >= ShardSight.mostContainers {
            shards[number].last = .max
        }
    }

    /// Checks at intervals that the number of containers is still the known one, and whether a
    /// shard was moved away.
    private func count(_ connection: PostgresConnection) throws {
        let now = session.watch()
        if let counted, now - counted < Self.counts { return }
        let numbers = readable
        guard !numbers.isEmpty else { return }
        let rows = try connection.query(
            numbers.map {
                """
                SELECT \($0), (SELECT count(*) FROM \(schemas[$0].quotedName).container),
                    EXISTS (
                        SELECT 1 FROM \(schemas[$0].quotedName).storeMove
                        WHERE direction = 'away')
                """
            }.joined(separator: " UNION ALL "), within: Self.patience)
        for row in rows {
            guard let number = row[0].flatMap({ Int($0) }), let count = row[1].flatMap({ Int($0) }),
                shards.indices.contains(number)
            else { continue }
            let known = shards[number].containers.count
            if count != known, known < ShardSight.mostContainers { shards[number].forget() }
            let isMovedAway = row[2] == "t"
            guard shards[number].isMovedAway != isMovedAway else { continue }
            shards[number].isMovedAway = isMovedAway
            shards[number].revision += 1
        }
        counted = now
    }
}

extension ContainerKey {
    /// Creates the key from a row's columns; `nil` if they are not valid.
    init?(name: String?, environment: String?) {
        guard let container = name.flatMap({ ContainerID(rawValue: $0) }),
            let environment = environment.flatMap({ ContainerEnvironment(rawValue: $0) })
        else { return nil }
        self.init(container: container, environment: environment)
    }
}
