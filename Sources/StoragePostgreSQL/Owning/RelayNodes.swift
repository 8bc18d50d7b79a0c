import Migrations
import PostgresLink
import RelayModel
import Storage
package import StorageSQL

/// A relay that has a store on a server, or stands by for it.
package struct StoreNode: Sendable, Hashable {
    /// What a relay does for the store.
    package enum Role: String, Sendable {
        /// It has the store.
        case owner
        /// It waits until the owner ends.
        case standingBy
        /// It has not said for some seconds that it is there.
        case silent
        /// It is no relay, and moves the store elsewhere or to here.
        case move
    }

    /// How far a relay that stands by has the store's state, which it goes on from once it takes
    /// the store.
    package enum Standby: String, Sendable {
        /// It reads subscriptions and devices.
        case loading
        /// It has them.
        case warm
    }

    /// What it is called.
    package let name: String
    /// Which Belfry it is; empty if it is not known.
    package let version: String
    package let role: Role
    /// Since when it knows of the store, and when it said last that it is there: RFC 3339, by the
    /// server's clock; empty if that is not known.
    package let since: String
    package let seen: String
    /// How long nobody else takes the store; `nil` if it is not the owner's.
    package let leaseUntil: String?
    /// How often the store had a new owner; `nil` if it is not the owner.
    package let epoch: Int64?
    /// Where others reach it; `nil` if it is not the owner, or does not say.
    package let address: String?
    /// How far it has the store's state; `nil` if it keeps none until the store is its own.
    package let standby: Standby?
    /// What all relays should have alike, as it has it; `nil` if it does not say.
    package let settings: AgreedSettings?
    /// The machine on which it runs; `nil` if it does not say.
    package let machine: String?
}

/// What the relays of a store tell of themselves, in a table of it.
///
/// Each writes a row with the beat of the lease, which waits for no standby. Rows of relays that
/// are not heard of any more are dropped by the others.
enum RelayNodes {
    /// How long a relay that says nothing is shown.
    static let memory = Duration.seconds(180)
    /// How long one that says nothing is taken for there.
    static let silence = Ownership.lease
    /// How many are kept; whoever comes beyond works, and is not shown.
    static let limit = 64

    /// Whether a moment is not long ago, in SQL; one that is far ahead is from before the server's
    /// clock was set back.
    static func isSeen(_ moment: String, within time: Duration) -> String {
        let seconds = "make_interval(secs => \(time.components.seconds))"
        return """
            \(moment) BETWEEN clock_timestamp() - \(seconds) AND clock_timestamp() + \(seconds)
            """
    }

    /// Says that a relay is there.
    ///
    /// Who is silent is shown as long as there is room: a relay that fails again and again leaves a
    /// row each time, and these must not keep those from being shown that are there.
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

    /// Says that a relay ends.
    static func leave(_ claimant: StoreClaimant, _ connection: PostgresConnection) throws {
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            DELETE FROM relayNode USING quick WHERE session = $1
            """, [claimant.sessionName], within: Ownership.renewal * 2)
    }

    /// How many are there.
    static func count(_ connection: PostgresConnection) throws -> Int {
        let rows = try connection.query(
            """
            SELECT count(*) FROM relayNode WHERE \(isSeen("seen", within: silence))
            """, within: Ownership.renewal * 2)
        return rows.first?[0].flatMap { Int($0) } ?? 0
    }

    /// What the relays that are there have set otherwise than `claimant`, a sentence for each.
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
            return "\(name) has other settings (\(list)): give all relays the same, because those "
                + "of the owner hold, and each may be the next"
        }
    }

    /// Refuses a relay that may not stand by for the owner, by what both have set.
    ///
    /// An owner that does not say what it has set, as one of an older version, keeps nobody away.
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
            reason: "\(row[0] ?? "a relay"), which owns it, has other settings that must be the "
                + "same (\(SettingDifference.list(required, \.description))): give both the same, "
                + "end that one first, or name another storage.schema")
    }

    /// All of them, the owner first.
    static func all(_ connection: PostgresConnection) throws -> [StoreNode] {
        func text(_ moment: String) -> String {
            "to_char(\(moment) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        }
        // An owner that has not said anything yet is there too.
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
    /// The relays that know of the store at `place`, the owner first; asked of the server, whether
    /// or not one of them answers.
    ///
    /// - Throws: ``StorageError`` if there is no store, or of another version.
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
                    reason: "its schema has version \(version), and this Belfry reads version "
                        + "\(schema.version): run that version")
            }
            return try RelayNodes.all(connection)
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }
}
