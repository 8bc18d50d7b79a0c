import Migrations
import PostgresLink
import RelayModel
import Storage
package import StorageSQL

/// A relay that owns a store on a server, or stands by for it.
package struct StoreNode: Sendable, Hashable {
    /// The role of a relay.
    package enum Role: String, Sendable {
        /// It owns the store.
        case owner
        /// It waits until the owner ends.
        case standingBy
        /// It has not announced itself for some seconds.
        case silent
        /// It is not a relay, but a move of the store to or from here.
        case move
    }

    /// How much of the store's state a standby relay has loaded, with which it continues once it
    /// owns the store.
    package enum Standby: String, Sendable {
        /// It is reading subscriptions and devices.
        case loading
        /// It has read them.
        case warm
    }

    /// The relay's name.
    package let name: String
    /// The version of Belfry that it runs; empty if unknown.
    package let version: String
    package let role: Role
    /// When it first announced itself, and when it did so last: RFC 3339, by the server's clock;
    /// empty if unknown.
    package let since: String
    package let seen: String
    /// The end of its lease; `nil` if it is not the owner.
    package let leaseUntil: String?
    /// The number of owners that the store has had so far; `nil` if it is not the owner.
    package let epoch: Int64?
    /// The address at which other relays reach it; `nil` if it is not the owner or has none.
    package let address: String?
    /// How much of the store's state it has loaded; `nil` if it loads none until it owns the store.
    package let standby: Standby?
    /// The settings that all relays should have alike; `nil` if it does not publish them.
    package let settings: AgreedSettings?
    /// The machine on which it runs; `nil` if it does not say.
    package let machine: String?
}

/// The announcements of a store's relays, in a table of the store.
///
/// Each relay writes a row with the heartbeat of the lease, without waiting for a synchronous
/// standby. The other relays delete the rows of relays that were silent for long.
enum RelayNodes {
    /// How long a silent relay is listed.
    static let memory = Duration.seconds(180)
    /// How long a silent relay is assumed to be running.
    static let silence = Ownership.lease
    /// The maximum number of rows; further relays work but are not listed.
    static let limit = 64

    /// Returns a SQL condition: whether a time is recent.
    ///
    /// A time that is far in the future is from before the server's clock was set back.
    static func isSeen(_ moment: String, within time: Duration) -> String {
        let seconds = "make_interval(secs => \(time.components.seconds))"
        return """
            \(moment) BETWEEN clock_timestamp() - \(seconds) AND clock_timestamp() + \(seconds)
            """
    }

    /// Announces a relay.
    ///
    /// Silent relays are kept as long as there is space. A relay that fails again and again leaves
    /// a row each time, and these rows must not push out the running relays.
    static func announce(
        _ claimant: StoreClaimant, standby: StoreNode.Standby? = nil,
        _ connection: PostgresConnection
    ) throws {
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true)),
            gone AS (
                DELETE FROM relayNode USING quick
                WHERE session <> $1 AND NOT (\(isSeen("seen", within: memory))
                    AND (\(isSeen("seen", within: silence))
                        OR (SELECT count(*) FROM relayNode) < \(limit))))
            INSERT INTO relayNode
                (session, name, version, since, seen, standby, settings, machine, stores)
            SELECT $1, $2, $3, clock_timestamp(), clock_timestamp(), $4, $5, $6, $7 FROM quick
            WHERE (SELECT count(*) FROM relayNode
                WHERE session <> $1 AND \(isSeen("seen", within: silence))) < \(limit)
            ON CONFLICT (session) DO UPDATE SET seen = excluded.seen, standby = excluded.standby
            """,
            [
                claimant.sessionName, claimant.name, claimant.version, standby?.rawValue,
                try claimant.settings?.storedText(), claimant.machine,
                claimant.stores.isEmpty ? nil : StoreView.list(of: claimant.stores),
            ],
            within: Ownership.renewal * 2)
    }

    /// Removes the row of a relay that ends.
    static func leave(_ claimant: StoreClaimant, _ connection: PostgresConnection) throws {
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            DELETE FROM relayNode USING quick WHERE session = $1
            """, [claimant.sessionName], within: Ownership.renewal * 2)
    }

    /// Returns the number of running relays.
    static func count(_ connection: PostgresConnection) throws -> Int {
        let rows = try connection.query(
            """
            SELECT count(*) FROM relayNode WHERE \(isSeen("seen", within: silence))
            """, within: Ownership.renewal * 2)
        return rows.first?[0].flatMap { Int($0) } ?? 0
    }

    /// Describes how the settings of the running relays differ from those of `claimant`, in a
    /// sentence for each relay.
    static func disagreements(
        with claimant: StoreClaimant, _ connection: PostgresConnection
    ) throws -> [String] {
        guard let own = claimant.settings else { return [] }
        let rows = try connection.query(
            """
            SELECT name, settings FROM relayNode
            WHERE session <> $1 AND settings <> $2 AND \(isSeen("seen", within: silence))
            ORDER BY name, session LIMIT \(limit)
            """, [claimant.sessionName, try own.storedText()], within: Ownership.renewal * 2)
        return rows.compactMap { row in
            guard let name = row[0], let other = row[1].flatMap({ AgreedSettings(stored: $0) })
            else { return nil }
            let differences = own.differences(of: other)
            guard !differences.isEmpty else { return nil }
            let list = SettingDifference.list(differences, \.description)
            return "\(name) has other settings (\(list)): give all relays the same: the settings "
                + "of the owner are in force, and any relay may become the owner"
        }
    }

    /// Refuses a relay whose settings do not allow it to stand by for the owner.
    ///
    /// An owner that does not publish its settings, such as one of an older version, refuses none.
    static func refuseOthers(
        than claimant: StoreClaimant, at place: PostgresPlace, _ connection: PostgresConnection
    ) throws {
        guard let own = claimant.settings else { return }
        let rows = try connection.query(
            """
            SELECT node.name, node.settings FROM relayNode AS node JOIN ownership
                ON ownership.owner = node.session
            WHERE node.settings IS NOT NULL
            """)
        guard let row = rows.first, let other = row[1].flatMap({ AgreedSettings(stored: $0) })
        else { return }
        let required = own.differences(of: other).filter(\.isRequired)
        guard !required.isEmpty else { return }
        throw StorageError.inaccessible(
            path: "\(place)",
            reason: "\(row[0] ?? "a relay"), which owns it, has other values of settings that must "
                + "be the same (\(SettingDifference.list(required, \.description))): give both "
                + "relays the same, end that one first, or name another storage.schema")
    }

    /// Returns all relays, the owner first.
    static func all(_ connection: PostgresConnection) throws -> [StoreNode] {
        func text(_ moment: String) -> String {
            "to_char(\(moment) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        }
        // The owner is listed even if it has not announced itself yet.
        let rows = try connection.query(
            """
            SELECT coalesce(node.name, ownership.name, ''), coalesce(node.version, ''),
                ownership.owner IS NOT NULL, coalesce(ownership.owner, ''),
                coalesce(\(isSeen("node.seen", within: silence)), true),
                coalesce(\(text("node.since")), ''), coalesce(\(text("node.seen")), ''),
                \(text("ownership.leaseUntil")), ownership.epoch::text, ownership.address,
                node.standby, node.settings, node.machine
            FROM relayNode AS node FULL JOIN (
                SELECT * FROM ownership WHERE owner IS NOT NULL
                    AND leaseUntil > clock_timestamp()) AS ownership
                ON ownership.owner = node.session
            ORDER BY 3 DESC, node.since, node.session LIMIT \(limit + 1)
            """)
        return rows.map { row in
            let isOwner = row[2] == "t"
            let role: StoreNode.Role =
                if isOwner {
                    row[3]?.hasPrefix(StoreClaimant.movePrefix) == true ? .move : .owner
                } else {
                    row[4] == "t" ? .standingBy : .silent
                }
            return StoreNode(
                name: row[0] ?? "", version: row[1] ?? "", role: role, since: row[5] ?? "",
                seen: row[6] ?? "", leaseUntil: isOwner ? row[7] : nil,
                epoch: isOwner ? row[8].flatMap { Int64($0) } : nil,
                address: isOwner ? row[9] : nil,
                standby: isOwner ? nil : row[10].flatMap { StoreNode.Standby(rawValue: $0) },
                settings: row[11].flatMap { AgreedSettings(stored: $0) }, machine: row[12])
        }
    }
}

extension RelayStore {
    /// Returns the relays of the store at `place`, the owner first.
    ///
    /// The server is queried, so no relay has to answer.
    ///
    /// - Throws: ``StorageError`` if there is no store, or it is of another version.
    package static func nodes(_ place: PostgresPlace) throws -> [StoreNode] {
        do {
            let connection = try PostgresSession(place: place, name: "belfry nodes").connect()
            let schema = PostgresSchema(place: place, migrations: Migration.releasedOnPostgreSQL)
            guard let version = try schema.found(connection) else {
                throw place.missing
            }
            guard version == schema.version else {
                throw StorageError.inaccessible(
                    path: "\(place)",
                    reason: "its schema has version \(version), and this Belfry can read only "
                        + "version \(schema.version): run that version")
            }
            return try RelayNodes.all(connection)
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }
}
