import GRDB
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Statements that run often use an index, so that their cost does not grow with the store.
@Suite struct QueryPlanTests {
    private static let zone =
        "container=? AND database=? AND owner=? AND zoneOwner=? AND zoneName=?"

    @Test func `devices with the same ID or token are found by an index`() async throws {
        let steps = try await plan(of: DeviceStep.rivalsStatement, arguments: [1, "a", "b", "c"])
        let searches = steps.filter { $0.contains(" device ") }
        #expect(
            searches == [
                "SEARCH device USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH device USING INDEX deviceActiveID "
                    + "(container=? AND deviceID=? AND owner=?)",
                "SEARCH device USING INDEX deviceActiveToken (container=? AND token=?)",
            ])
    }

    /// A search by fewer columns than are known would read other owners' rows, or a whole zone.
    @Test(arguments: [
        (
            ShadowRows.namedStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordName (\(zone) AND recordName=?)"
        ),
        (
            ShadowRows.headStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordName (\(zone) AND recordName=?)"
        ),
        (
            ShadowRows.deletedWithStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordDeletedWith (\(zone) AND deletedWith=?)"
        ),
        (
            ShadowRows.deletedWithStatement, "further",
            "SEARCH further USING COVERING INDEX shadowRecordDeletedWith "
                + "(\(zone) AND deletedWith=?)"
        ),
        (
            ShadowRows.liveStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordLive (\(zone))"
        ),
        (
            ShadowRows.followingStatement, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordName (\(zone) AND recordName=?)"
        ),
        (
            RelayStore.undatedVersions, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordVersion (modifiedAt=?)"
        ),
        (
            RelayStore.oldVersions, "shadowRecord",
            "SEARCH shadowRecord USING INDEX shadowRecordVersion (modifiedAt<?)"
        ),
        (
            RelayStore.firstIdleUser, "subscription",
            "SEARCH subscription USING COVERING INDEX subscriptionOwner (owner=?)"
        ),
        (
            "SELECT thing FROM quotaUse \(RelayStore.uses)", "quotaUse",
            "SEARCH quotaUse USING PRIMARY KEY (container=? AND thing=? AND holder=?)"
        ),
        (
            RelayStore.firstIdleUser, "badge",
            "SEARCH badge USING COVERING INDEX badgeOwner (owner=?)"
        ),
        (
            RelayStore.firstIdleUser, "courierNotification",
            "SEARCH courierNotification USING COVERING INDEX courierNotificationOwner (owner=?)"
        ),
        (
            UnkeptTypes.sliceStatement(.sqlite), "shadowRecord",
            "SEARCH shadowRecord USING PRIMARY KEY (container=? AND (database,owner,zoneOwner,"
                + "zoneName,recordType,recordName)>(?,?,?,?,?,?))"
        ),
        (
            UnseenRecords.sliceStatement, "shadowRecord",
            "SEARCH shadowRecord USING PRIMARY KEY (container=? AND (database,owner,zoneOwner,"
                + "zoneName,recordType,recordName)>(?,?,?,?,?,?))"
        ),
        (
            CourierStep.addressStatement, "device",
            "SEARCH device USING INDEX deviceActiveID (container=? AND deviceID=? AND owner=?)"
        ),
        (
            DeviceStep.forgottenStatement, "device",
            "SEARCH device USING INDEX deviceActiveID (container=? AND deviceID=? AND owner=?)"
        ),
        (
            DeviceStep.surplusStatement, "device",
            "SEARCH device USING INDEX deviceActiveOwner (owner=?)"
        ),
        (
            InboxStep.sharingStatement, "notification",
            "SEARCH notification USING INDEX notificationID (owner=? AND notificationID=?)"
        ),
    ])
    func `growing tables are searched by all known columns`(
        statement: String, table: String, search: String
    ) async throws {
        let steps = try await plan(of: statement)
        #expect(steps.filter { $0.contains(" \(table) ") } == [search])
    }

    /// A user's list of their own devices must not read the whole container.
    @Test func `the devices of a user are found by an index`() async throws {
        let steps = try await plan(
            of: """
                \(VersionTable.device.select())
                WHERE \(VersionTable.liveDevices(ofOne: true)) AND serial > ?3
                ORDER BY serial LIMIT 9
                """, arguments: [1, "ann", 0])
        #expect(
            steps.filter { $0.contains(" device ") } == [
                "SEARCH device USING INDEX deviceActiveOwner (owner=? AND serial>?)"
            ])
        #expect(steps.allSatisfy { !$0.contains("TEMP B-TREE") })
    }

    @Test func `the sessions of a user are found by an index`() async throws {
        let steps = try await plan(
            of: ListStatements.sessionsOfUser, arguments: [1, 0, 9, "ann"])
        #expect(steps.contains("SEARCH userSession USING INDEX userSessionOwner (owner=?)"))
        #expect(steps.allSatisfy { !$0.hasPrefix("SCAN") }, "\(steps)")
    }

    /// Pruning asks each minute, and there may be millions of rows that have not ended.
    @Test func `the start of pruning is found by an index`() async throws {
        let statements =
            VersionTable.allCases.map { PastStep.firstEndStatement($0) }
            + [RelayStore.firstStatement]
        for statement in statements {
            let steps = try await plan(of: statement)
            #expect(steps.contains { $0.contains(" USING ") }, "\(steps)")
            #expect(steps.allSatisfy { !$0.contains("TEMP B-TREE") }, "\(steps)")
        }
    }

    /// A session with a long-lived token is kept for that long, even after the session has ended.
    @Test func `expired sessions are found without those that were ended`() async throws {
        let sessions = AgingRows.sessions
        for statement in [
            sessions.firstStatement,
            "SELECT container, id FROM userSession \(sessions.selection)",
        ] {
            let steps = try await plan(of: statement)
            #expect(steps.count == 1, "\(steps)")
            #expect(
                steps.allSatisfy {
                    $0.hasPrefix("SEARCH userSession ") && $0.contains("userSessionOver (<expr>")
                }, "\(steps)")
        }
    }

    /// A container has as many badges as devices.
    @Test func `the badge of an ended device is found by an index`() async throws {
        let steps = try await plan(of: DeviceStep.endedBadgeStatement)
        #expect(
            steps.contains(
                "SEARCH badge USING PRIMARY KEY (container=? AND deviceID=? AND owner=?)"),
            "\(steps)")
        #expect(steps.allSatisfy { !$0.hasPrefix("SCAN") }, "\(steps)")
    }

    /// Each courier that ends would otherwise cost a scan of the whole queue.
    @Test func `the queue of a courier is found by an index`() async throws {
        for statement in [
            "DELETE FROM courier WHERE id = ?", DeviceStep.forgettingCourier,
            DeviceStep.forgettingYoungCourier,
        ] {
            let steps = try await plan(of: statement)
            #expect(steps.contains { $0.contains("courierNotificationCourier (courier=?)") })
            #expect(steps.allSatisfy { !$0.hasPrefix("SCAN") }, "\(steps)")
        }
        for statement in [RelayStore.idleStatement, RelayStore.orphanStatement] {
            let steps = try await plan(of: statement, arguments: [1, 9])
            #expect(steps.contains { $0.contains("courierPolled (polledAt<?)") }, "\(steps)")
            #expect(steps.allSatisfy { !$0.hasPrefix("SCAN") }, "\(steps)")
        }
    }

    /// Whatever filter a list has, its rows come from an index in the order of the list.
    ///
    /// Only sets that a quota bounds are sorted.
    @Test(arguments: [
        (
            ListStatements.changesOfType,
            "logEntryRecord (container=? AND recordType=? AND position<?)"
        ),
        (ListStatements.positionsOfRecord, "logEntryRecord (container=? AND recordType=?)"),
        (ListStatements.nextType, "logEntryRecord (container=? AND recordType>?)"),
        (
            ListStatements.retries, "retryPosition (container=? AND (position,deliveryID)<(?,?))"
        ),
        (
            ListStatements.retriesOfUser,
            "retryOwner (container=? AND owner=? AND (position,deliveryID)<(?,?))"
        ),
        (
            ListStatements.letters,
            "deadLetterContainer (container=? AND (endedAt,deliveryID)<(?,?))"
        ),
        (
            ListStatements.lettersOfUser,
            "deadLetterOwner (container=? AND owner=? AND (endedAt,deliveryID)<(?,?))"
        ),
        (
            ListStatements.lettersOfReason,
            "deadLetterReason (container=? AND reason=? AND (endedAt,deliveryID)<(?,?))"
        ),
        (ListStatements.sessions, "userSessionStarted (container=?)"),
        (ListStatements.ofChange("retry"), "retryPosition (container=? AND position=?)"),
        (ListStatements.ofChange("deadLetter"), "deadLetterPosition (container=? AND position=?)"),
        (
            ListStatements.subscriptions(in: .sqlite),
            "subscriptionListed (container=? AND serial<?)"
        ),
        (
            ListStatements.subscriptionsOfType,
            "subscriptionType (container=? AND recordType=? AND serial<?)"
        ),
        (ListStatements.devices(in: .sqlite), "deviceListed (container=? AND serial<?)"),
        (ListStatements.parked, "parkedChangeContainer (container=? AND number<?)"),
        (
            ListStatements.parkedOfSource,
            "parkedChangeSource (container=? AND source=? AND number<?)"
        ),
    ])
    func `lists are filtered by an index and not sorted`(
        statement: String, index: String
    ) async throws {
        let steps = try await plan(of: Self.filled(statement), arguments: [])
        let searches = steps.filter { $0.hasPrefix("SEARCH") && $0.contains("INDEX \(index)") }
        #expect(searches.count == 1, "\(steps)")
        #expect(!steps.contains { $0.contains("TEMP B-TREE") || $0.hasPrefix("SCAN") }, "\(steps)")
    }

    @Test func `all changes are listed in the order of the log`() async throws {
        let steps = try await plan(of: Self.filled(ListStatements.changes), arguments: [])
        #expect(steps.contains("SEARCH logEntry USING INTEGER PRIMARY KEY (rowid<?)"), "\(steps)")
        #expect(!steps.contains { $0.contains("TEMP B-TREE") }, "\(steps)")
    }

    /// Returns a statement with a literal value for each numbered parameter.
    private static func filled(_ statement: String) -> String {
        statement.replacing(/\?[0-9]*/) { _ in "1" }
    }

    private func plan(
        of statement: String, arguments: GRDB.StatementArguments? = nil
    ) async throws -> [String] {
        let home = try TemporaryStore()
        let store = try home.open()
        await store.close()
        let queue = try DatabaseQueue(path: home.path)
        return try await queue.read { db in
            let number = statement.count { $0 == "?" }
            let values = arguments ?? GRDB.StatementArguments([Int](repeating: 1, count: number))
            let sql = "EXPLAIN QUERY PLAN \(statement)"
            return try GRDB.Row.fetchAll(db, sql: sql, arguments: values)
                .map { $0["detail"] as String }
        }
    }
}
