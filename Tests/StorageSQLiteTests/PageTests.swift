import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Lists end at a number of bytes as well as at a number of rows.
@Suite struct PageTests {
    private static let ann = Sample.owner("ann")

    private static func ready(_ home: TemporaryStore) async throws -> RelayStore {
        let store = try home.open()
        try await store.save(
            ContainerSettings(key: Sample.container, topics: ["t"]), at: Sample.moment(0))
        return store
    }

    /// A page looks at a limited number of changes, and may be empty.
    ///
    /// After a restore, a source that follows a database resumes after its newest change, and must
    /// find it.
    @Test func `a source's newest change is found behind very many of other sources`() async throws
    {
        let store = try await Self.ready(TemporaryStore(in: .memory))
        _ = try await store.append(
            [Sample.unkeyed("one")], container: Sample.container, source: Sample.source,
            at: Sample.moment(1))
        let other: SourceName = Sample.identifier("other")
        let part = 1000
        for _ in 0...(ListScan.lookedAt / part) {
            _ = try await store.append(
                (0..<part).map { Sample.unkeyed("r\($0)") }, container: Sample.container,
                source: other, at: Sample.moment(2))
        }
        let newest = try await store.newestChange(of: Sample.container, from: Sample.source)
        #expect(newest?.position == LogPosition(1))
        let none = try await store.newestChange(
            of: Sample.container, from: Sample.identifier("none"))
        #expect(none == nil)
        await store.close()
    }

    @Test func `subscriptions come in pages of limited bytes`() async throws {
        let store = try await Self.ready(TemporaryStore())
        let edits = (1...5).map { number in
            var subscription = Sample.subscription(
                "s\(number)", artist: "artist-\(number)", of: Self.ann)
            subscription.notificationInfo.alertBody = String(repeating: "x", count: 1000)
            return SubscriptionEdit.create(subscription)
        }
        _ = try await store.edit(
            edits, of: Self.ann, atomicity: .independent, at: Sample.moment(1))
        var sizes: [Int] = []
        var last: SubscriptionID?
        repeat {
            let page = try await store.subscriptionPage(
                of: Self.ann, after: last, PageBounds(rows: 100, bytes: 2000))
            sizes.append(page.elements.count)
            last = page.hasMore ? page.elements.last?.subscription.id : nil
        } while last != nil
        #expect(sizes == [2, 2, 1])
        var serials: [UInt64] = []
        var serial: UInt64 = 0
        for _ in 0..<5 {
            let page = try await store.subscriptionPage(
                of: Sample.container, user: Self.ann.user, after: serial,
                PageBounds(rows: 1, bytes: 1))
            serials += page.elements.map(\.serial)
            serial = serials.last ?? 0
            #expect(page.hasMore == (serials.count < 5))
        }
        #expect(Set(serials).count == 5)
        let others = try await store.subscriptionPage(
            of: Sample.otherContainer, user: nil, after: 0, PageBounds(rows: 9))
        #expect(others.elements.isEmpty && !others.hasMore)
        await store.close()
    }

    @Test func `devices come in pages`() async throws {
        let store = try await Self.ready(TemporaryStore())
        for number in 1...5 as ClosedRange<UInt8> {
            _ = try await store.register(
                Sample.device("d\(number)", of: number < 4 ? "ann" : "bob", token: number),
                at: Sample.moment(1))
        }
        let first = try await store.devicePage(
            of: Sample.container, owner: nil, after: 0, PageBounds(rows: 3))
        #expect(first.elements.map(\.serial) == [1, 2, 3] && first.hasMore)
        let second = try await store.devicePage(
            of: Sample.container, owner: nil, after: 3, PageBounds(rows: 3))
        #expect(second.elements.map(\.serial) == [4, 5] && !second.hasMore)
        let bobs = try await store.devicePage(
            of: Sample.container, owner: Sample.identifier("bob"), after: 4, PageBounds(rows: 3))
        #expect(bobs.elements.map(\.serial) == [5] && !bobs.hasMore)
        let counts = try await store.rowCounts(of: Sample.container, limit: 4)
        #expect(counts.devices == 4 && counts.parked == 0)
        await store.close()
    }

    @Test func `parked changes and log entries come in pages of limited bytes`() async throws {
        let home = try TemporaryStore()
        let store = try await Self.ready(home)
        for number in 1...4 as ClosedRange<Int64> {
            _ = try await store.park(
                ParkedChange(
                    container: Sample.container, source: Sample.source, reason: "", path: "",
                    body: Array(repeating: UInt8(number), count: 3_000_000), headers: [:],
                    receivedAt: Sample.moment(number)))
        }
        let parked = try await store.parkedChanges(of: Sample.container, after: 0, limit: 100)
        #expect(parked.map(\.number) == [1, 2])
        var change = Sample.change("big")
        change.after = RecordImage(["text": .string(String(repeating: "x", count: 900_000))])
        for _ in 0..<8 {
            _ = try await store.append(
                [ChangeToAppend(change, key: nil)], container: Sample.container,
                source: Sample.source, at: Sample.moment(0))
        }
        await store.close()
        // This reads from the file, and not from what memory holds of it.
        let again = try home.open()
        let first = try await again.entries(after: .start, limit: 100)
        #expect(first.map(\.position) == (1...5).map { LogPosition($0) })
        #expect(try await again.entries(after: LogPosition(5), limit: 100).count == 3)
        await again.close()
    }

    @Test func `zone changes and named records come in pages of limited bytes`()
        async throws
    {
        let store = try await Self.ready(TemporaryStore())
        let type: RecordType = Sample.identifier("Artwork")
        let place = RecordPlace(container: Sample.container, database: .public, owner: nil)
        let ids = (1...5).map { RecordID(recordName: Sample.identifier("r\($0)")) }
        let edits = ids.map { id in
            var edit = RecordEdit(.create, id, type: type)
            edit.fields = ["text": .string(String(repeating: "x", count: 1000))]
            return edit
        }
        _ = try await store.modify(
            edits, in: place, by: RecordEditor(userID: nil, isServer: true),
            atomicity: .independent, additions: [RecordTypeDefinition(type, isInferred: true)],
            at: Sample.moment(1))
        let page = try await store.recordChanges(
            in: .default, of: place, after: .start, PageBounds(rows: 9, bytes: 2000))
        #expect(page.elements.map(\.recordID) == Array(ids.prefix(2)) && page.hasMore)
        let (found, unread) = try await store.records(named: ids, in: place, bytes: 3000)
        #expect(found.count == 3)
        #expect(unread == Set(ids.suffix(2)))
        #expect(try await store.zone(.default, of: place)?.isDeleted == false)
        #expect(try await store.zone(ZoneID(zoneName: "none") ?? .default, of: place) == nil)
        await store.close()
    }
}
