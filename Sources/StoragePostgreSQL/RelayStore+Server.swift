import Migrations
import PostgresLink
import RelayModel
package import Storage
package import StorageSQL

// A store on a PostgreSQL server. One process owns it at a time. Others wait until that process
// ends
// or dies, and then continue where it was.
extension RelayStore {
    /// Opens the store at `place`, and brings its schema up to date.
    ///
    /// It blocks on the server and on migrations. As long as the store is open, `census` watches
    /// the relays of all stores of the service.
    ///
    /// - Throws: ``StorageError`` if the server cannot be reached or used, the schema is foreign or
    ///   of a newer version, or a setting of the server would break a guarantee;
    ///   ``StorageError/locked(path:holder:)`` while another process owns the store. A caller that
    ///   retries gets the store within some seconds after that process has ended or died.
    package static func open(
        _ place: PostgresPlace, as claimant: StoreClaimant,
        settings: StoreSettings = StoreSettings(), census: StoreCensus? = nil
    ) throws -> RelayStore {
        let session = PostgresSession(place: place, name: claimant.sessionName)
        do {
            let connection = try session.connect()
            let schema = PostgresSchema(place: place, migrations: Migration.releasedOnPostgreSQL)
            // A start does not migrate a store that is part of a move: the version of Belfry that
            // began the move could not finish it then.
            if try schema.found(connection) != nil {
                try MoveMark.refuse(place, owner: nil, connection)
            }
            _ = try schema.apply(
                connection, makesSchema: settings.creation == .whenMissing)
            try schema.refuseUngranted(connection)
            try schema.refuseAltered(connection)
            // Also before the claim, so that a standby relay does not take the store from the move.
            try MoveMark.refuse(place, owner: nil, connection)
            let epoch = try claim(claimant, place, connection, settings)
            let owner = claimant.sessionName
            try MoveMark.refuse(place, owner: (owner, epoch), connection)
            do {
                try ServerSecrets(place: place, vault: settings.secrets)
                    .seal(session, epoch: epoch)
            } catch {
                // A relay that can use the store need not wait for the lease to expire.
                try? Ownership.release(epoch: epoch, by: owner, connection)
                throw error
            }
            // However long that took, the lease is renewed before anything is acknowledged.
            guard try Ownership.renew(epoch: epoch, by: owner, connection) else {
                throw StorageError.locked(path: "\(place)", holder: "another relay")
            }
            let opened = try find(epoch, connection, settings)
            let engine = try ServerEngine(
                session, connection, opened, as: claimant, census: census, settings: settings,
                advice: PostgresSession.advice(connection))
            return RelayStore(engine, opened, settings: settings)
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }

    /// Brings the schema at `place` up to date; returns the names of the applied migrations.
    ///
    /// - Throws: ``StorageError`` as ``open(_:as:settings:census:)`` does.
    package static func migrate(_ place: PostgresPlace) throws -> [String] {
        do {
            let connection = try PostgresSession(place: place, name: "belfry migrate").connect()
            return try PostgresSchema(
                place: place, migrations: Migration.releasedOnPostgreSQL
            ).apply(connection, makesSchema: true)
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }

    /// Checks the store at `place`: every row, and the rules between the tables, as of one moment.
    ///
    /// A running relay may have it open.
    ///
    /// - Throws: ``StorageError`` if there is no store, or it is of another version.
    package static func check(_ place: PostgresPlace) throws -> StoreReport {
        let session = PostgresSession(place: place, name: "belfry check")
        do {
            let plain = try session.connect()
            let schema = PostgresSchema(place: place, migrations: Migration.releasedOnPostgreSQL)
            guard let version = try schema.found(plain) else {
                throw place.missing
            }
            guard version == schema.version else {
                throw StorageError.inaccessible(
                    path: "\(place)",
                    reason: "its schema has version \(version), and this Belfry can check only "
                        + "version \(schema.version): run belfry migrate, or that version")
            }
            let finding = try AlteredTables.finding(in: place.schema, plain)
            // Reading everything may take any time.
            try plain.query(
                "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
            let connection = ServerConnection(try PostgresPipeline(plain, patience: .seconds(3600)))
            try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            defer { connection.rollBack() }
            return try StoreReport(
                rowsOf: Database(connection), schemaVersion: version,
                problems: finding.map { [$0] } ?? [])
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }

    private static func claim(
        _ claimant: StoreClaimant, _ place: PostgresPlace, _ connection: PostgresConnection,
        _ settings: StoreSettings
    ) throws -> Int64 {
        switch try Ownership.claim(claimant, connection) {
        case .owned(let epoch): return epoch
        case .owner(let name):
            // A relay that could not take over is refused now, and not when it has to take over.
            try ServerSecrets(place: place, vault: settings.secrets).check(connection)
            try RelayNodes.refuseOthers(than: claimant, at: place, connection)
            if claimant.isRelay { try RelayNodes.announce(claimant, connection) }
            throw StorageError.locked(path: "\(place)", holder: "the relay \(name)")
        }
    }

    /// Reads the state of the store that has just been claimed.
    private static func find(
        _ epoch: Int64, _ connection: PostgresConnection, _ settings: StoreSettings
    ) throws -> OpenedStore {
        let rows = try connection.query(
            "SELECT encode(identity, 'hex'), position FROM store, shardHead")
        guard let row = rows.first, let digits = row[0],
            let bytes = Hexadecimal.decode(digits), let identity = UUIDBytes(bytes: bytes),
            let head = row[1].flatMap({ Int64($0) })
        else { throw StorageError.damaged(path: "store", reason: "the store has no identity") }
        let ended = try connection.query(
            """
            SELECT serial FROM device
            WHERE ended > least((SELECT position FROM progress WHERE shard = 0),
                coalesce((SELECT min(position) - 1 FROM rangeTask), \(Int64.max)))
            ORDER BY ended DESC LIMIT \(EndedDevices.limit)
            """)
        return OpenedStore(
            identity: identity, epoch: epoch,
            horizon: LogHorizon(head: LogPosition(stored: head), settings: settings),
            endedDevices: EndedDevices(
                ended.reversed().compactMap { $0[0].flatMap { UInt64($0) } }))
    }
}
