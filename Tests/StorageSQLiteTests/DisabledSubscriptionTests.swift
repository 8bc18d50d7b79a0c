import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A subscription's strikes for expensive changes are not lost when its owner saves it again.
@Suite struct DisabledSubscriptionTests {
    private static let owner = SubscriptionOwner(
        container: Fixtures.container, database: .public, user: Fixtures.identifier("alice"))
    private static let dear = Fixtures.subscription("dear", where: "title == 'dear'")
    private static let mended = Fixtures.subscription("dear", where: "title == 'mended'")

    /// A store that sets changes aside one after another.
    private final class Bench {
        let store: RelayStore
        private var position: UInt64 = 0

        init(_ home: TemporaryStore) async throws {
            store = try home.open()
            try await store.save(
                ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
                at: Fixtures.moment)
            // These edits also append the log entries that the test sets aside.
            for number in 1...12 {
                let other = Fixtures.subscription("s\(number)", where: "title == '\(number)'")
                _ = try await edit(.create(other))
            }
        }

        func edit(_ edit: SubscriptionEdit) async throws -> SubscriptionEditOutcome? {
            try await store.edit(
                [edit], of: owner, atomicity: .independent, at: Fixtures.moment
            ).first
        }

        /// Saves an edit and returns the version's serial.
        func save(_ edit: SubscriptionEdit) async throws -> UInt64 {
            guard case .saved(let version) = try await self.edit(edit) else {
                throw StorageError.damaged(path: "test", reason: "it is not saved")
            }
            return version.serial
        }

        /// Sets the next change aside because of `serial`; returns whether that disabled the
        /// subscription.
        func blame(_ serial: UInt64) async throws -> Bool {
            position += 1
            let entry = DearEntry(
                position: LogPosition(position), container: Fixtures.container, dearest: [serial],
                reason: "it took too many steps")
            return try await store.setAside(entry, at: Fixtures.moment) == [serial]
        }

        /// Sets changes aside because of `serials` until these are disabled; returns the disabled
        /// ones.
        func disable(_ serials: [UInt64]) async throws -> [UInt64] {
            var disabled: [UInt64] = []
            for _ in 0..<RelayStore.strikesOfSubscription {
                position += 1
                let entry = DearEntry(
                    position: LogPosition(position), container: Fixtures.container,
                    dearest: serials, reason: "they took too many steps")
                disabled += try await store.setAside(entry, at: Fixtures.moment)
            }
            return disabled
        }

        func disable() async throws {
            let serial = try await save(.create(dear))
            for _ in 1..<RelayStore.strikesOfSubscription {
                #expect(try await !blame(serial))
            }
            #expect(try await blame(serial))
        }
    }

    @Test(arguments: [SubscriptionEdit.create(dear), .update(dear), .update(mended)])
    func `a disabled subscription saved again is disabled by the next dear change`(
        edit: SubscriptionEdit
    ) async throws {
        let bench = try await Bench(TemporaryStore())
        try await bench.disable()
        let serial = try await bench.save(edit)
        #expect(try await bench.store.disabledSubscriptions(of: Self.owner) == [])
        #expect(try await bench.blame(serial))
        await bench.store.close()
    }

    @Test func `an edit keeps the strikes`() async throws {
        let bench = try await Bench(TemporaryStore())
        let first = try await bench.save(.create(Self.dear))
        #expect(try await !bench.blame(first))
        let second = try await bench.save(.update(Self.mended))
        #expect(try await !bench.blame(second))
        let third = try await bench.save(.update(Self.dear))
        #expect(try await bench.blame(third))
        await bench.store.close()
    }

    @Test func `a deletion forgets the strikes`() async throws {
        let bench = try await Bench(TemporaryStore())
        try await bench.disable()
        #expect(try await bench.edit(.delete(Self.dear.id)) == .deleted(Self.dear.id))
        let serial = try await bench.save(.create(Self.dear))
        #expect(try await !bench.blame(serial))
        await bench.store.close()
    }

    @Test func `the newest disabled subscriptions of a user are kept, up to one page`() async throws
    {
        let bench = try await Bench(TemporaryStore())
        let text = String(repeating: "x", count: 240_000)
        var serials: [UInt64] = []
        for number in 10..<30 {
            let large = Fixtures.subscription("n\(number)", where: "title == '\(number)\(text)'")
            serials.append(try await bench.save(.create(large)))
        }
        #expect(try await bench.disable(serials) == serials)
        let kept = try await bench.store.disabledSubscriptions(of: Self.owner)
            .map(\.version.subscription.id.rawValue)
        #expect((1..<20).contains(kept.count))
        #expect(kept == (30 - kept.count..<30).map { "n\($0)" })
        await bench.store.close()
    }

    @Test func `a disabled subscription whose edit is refused stays listed`() async throws {
        let bench = try await Bench(TemporaryStore())
        try await bench.disable()
        let twin = Fixtures.subscription("dear", where: "title == '1'")
        let refusal = try await bench.edit(.update(twin))
        #expect(refusal == .duplicate(of: Fixtures.identifier("s1")))
        let listed = try await bench.store.disabledSubscriptions(of: Self.owner)
        #expect(listed.map(\.version.subscription.id) == [Self.dear.id])
        await bench.store.close()
    }
}
