import RelayModel
import Storage
import Testing

/// The contract of ``Storage/Registry`` about subscriptions.
package enum SubscriptionConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("a saved subscription reads as it was saved", check: saving),
        ConformanceCase("saving the same again changes nothing", check: idempotence),
        ConformanceCase("the same content under another ID is refused", check: sameContent),
        ConformanceCase("an update ends one version and begins another", check: updating),
        ConformanceCase("a deleted subscription is gone, and its ID is free", check: deleting),
        ConformanceCase("an atomic request with a refusal changes nothing", check: atomicity),
        ConformanceCase("subscriptions belong to one user of one database", check: ownership),
        ConformanceCase(
            "the subscriptions active at a position are returned exactly", check: activeVersions),
        ConformanceCase("an ID that is saved concurrently is saved once", check: racingCreates),
        ConformanceCase("a request of many operations keeps their order", check: manyAtOnce),
        ConformanceCase(
            "a look-up reports subscriptions beyond the byte limit as unread",
            check: lookedUp),
    ]

    static let ann = Sample.owner("ann")

    static func saving(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var zone = Sample.subscription("zone", artist: "", of: ann)
        zone.scope = .zone(.default, recordType: Sample.identifier("Artwork"))
        zone.firesOn = .all
        var database = zone
        database.id = Sample.identifier("database")
        database.scope = .database(recordType: nil)
        database.suppress = .user
        let query = Sample.subscription("query", artist: "artist-1", of: ann, once: true)
        let outcomes = try await edit(
            store, [.create(query), .create(zone), .create(database)])
        let versions = outcomes.compactMap(\.savedVersion)
        #expect(versions.map(\.subscription) == [query, zone, database])
        #expect(versions.map(\.activation) == (1...3).map { LogPosition($0) })
        #expect(Set(versions.map(\.serial)).count == 3)
        let reopened = try await factory.reopen(store)
        let listed = try await reopened.subscriptions(of: ann)
        #expect(listed == [versions[2], versions[0], versions[1]])
        #expect(try await reopened.subscription(query.id, of: ann) == versions[0])
        let entries = try await reopened.entries(after: .start, limit: 10)
        #expect(entries.map(\.body) == versions.map { .subscriptionSaved($0, replaced: nil) })
        #expect(entries.map(\.appendedAt) == Array(repeating: Sample.moment(9), count: 3))
    }

    static func lookedUp(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let many = (10..<50).map { Sample.subscription("s\($0)", artist: "artist-\($0)", of: ann) }
        let saved = try await edit(store, many.map { .create($0) }).compactMap(\.savedVersion)
        _ = try await edit(store, [.delete(many[1].id)])
        let bob = Sample.owner("bob")
        let other = Sample.subscription("other", artist: "artist-1", of: bob)
        _ = try await store.edit(
            [.create(other)], of: bob, atomicity: .independent, at: Sample.moment(9))
        let others = ["nowhere", "other"].map { name -> SubscriptionID in Sample.identifier(name) }
        let ids = many.map(\.id) + others
        let all = try await store.subscriptions(named: ids, of: ann, bytes: 1 << 20)
        let left = saved.filter { $0.subscription.id != many[1].id }
        #expect(all.found.sorted { $0.serial < $1.serial } == left)
        #expect(all.unread.isEmpty)
        let one = try await store.subscriptions(named: ids, of: ann, bytes: 1)
        #expect(one.found == [left[0]])
        #expect(one.unread == Set(ids.dropFirst()))
        let none = try await store.subscriptions(named: [], of: ann, bytes: 1)
        #expect(none.found.isEmpty && none.unread.isEmpty)
    }

    static func manyAtOnce(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let many = (0..<45).map { Sample.subscription("s\($0)", artist: "artist-\($0)", of: ann) }
        var edits = many.map { SubscriptionEdit.create($0) }
        // An operation of one request sees what the operations before it have saved.
        edits += many.reversed().map { .delete($0.id) } + [.create(many[0]), .create(many[0])]
        let outcomes = try await edit(store, edits)
        #expect(outcomes.prefix(45).compactMap(\.savedVersion?.subscription) == many)
        #expect(outcomes.dropFirst(45).prefix(45) == many.reversed().map { .deleted($0.id) }[...])
        let last = try #require(outcomes[90].savedVersion)
        #expect(outcomes[91] == .unchanged(last))
        #expect(outcomes.count == 92)
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.subscriptions(of: ann) == [last])
        #expect(try await reopened.head() == LogPosition(91))
    }

    static func idempotence(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let subscription = Sample.subscription("a", artist: "artist-1", of: ann)
        let version = try await save(subscription, in: store)
        #expect(try await edit(store, [.create(subscription)]) == [.unchanged(version)])
        #expect(try await edit(store, [.update(subscription)]) == [.unchanged(version)])
        var other = subscription
        other.notificationInfo.alertBody = "Otherwise"
        #expect(try await edit(store, [.create(other)]) == [.exists(subscription.id)])
        #expect(try await store.head() == LogPosition(1))
        // Canonically equivalent spellings are equal as Swift strings, but are different content.
        let composed = Sample.subscription("b", artist: "\u{E9}", of: ann)
        let decomposed = Sample.subscription("b", artist: "e\u{301}", of: ann)
        _ = try await save(composed, in: store)
        #expect(try await edit(store, [.create(decomposed)]) == [.exists(decomposed.id)])
        #expect(try await edit(store, [.update(decomposed)])[0].savedVersion != nil)
    }

    static func sameContent(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = Sample.subscription("a", artist: "artist-1", of: ann)
        _ = try await save(first, in: store)
        var second = Sample.subscription("b", artist: "artist-1", of: ann)
        second.notificationInfo.alertBody = "Otherwise"
        #expect(try await edit(store, [.create(second)]) == [.duplicate(of: first.id)])
        let third = Sample.subscription("c", artist: "artist-2", of: ann)
        _ = try await save(third, in: store)
        second.id = third.id
        #expect(try await edit(store, [.update(second)]) == [.duplicate(of: first.id)])
        second.firesOn = [.delete]
        #expect(try await edit(store, [.update(second)])[0].savedVersion != nil)
    }

    static func updating(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await save(
            Sample.subscription("a", artist: "artist-1", of: ann), in: store)
        let changed = Sample.subscription("a", artist: "artist-2", of: ann)
        let outcome = try await edit(store, [.update(changed)])[0]
        let second = try #require(outcome.savedVersion)
        #expect(second.serial > first.serial)
        #expect(second.activation == LogPosition(2))
        #expect(try await store.subscriptions(of: ann) == [second])
        let entries = try await store.entries(after: LogPosition(1), limit: 1)
        #expect(entries.map(\.body) == [.subscriptionSaved(second, replaced: first.serial)])
        let unknown = Sample.subscription("b", artist: "artist-3", of: ann)
        #expect(try await edit(store, [.update(unknown)]) == [.notFound(unknown.id)])
    }

    static func deleting(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let subscription = Sample.subscription("a", artist: "artist-1", of: ann)
        let version = try await save(subscription, in: store)
        let outcomes = try await edit(
            store, [.delete(subscription.id), .delete(subscription.id), .create(subscription)])
        #expect(outcomes[0] == .deleted(subscription.id))
        #expect(outcomes[1] == .notFound(subscription.id))
        let again = try #require(outcomes[2].savedVersion)
        #expect(again.serial > version.serial)
        let entries = try await store.entries(after: LogPosition(1), limit: 10)
        #expect(
            entries.map(\.body) == [
                .subscriptionDeleted(serial: version.serial),
                .subscriptionSaved(again, replaced: nil),
            ])
    }

    static func atomicity(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let kept = try await save(Sample.subscription("a", artist: "artist-1", of: ann), in: store)
        let unknown: SubscriptionID = Sample.identifier("unknown")
        let edits: [SubscriptionEdit] = [
            .create(Sample.subscription("b", artist: "artist-2", of: ann)), .delete(unknown),
            .delete(kept.subscription.id),
        ]
        let refused = try await edit(store, edits, .allOrNothing)
        #expect(refused == [.undone, .notFound(unknown), .undone])
        #expect(try await store.subscriptions(of: ann) == [kept])
        #expect(try await store.head() == LogPosition(1))
        let applied = try await edit(store, edits, .independent)
        #expect(applied[1] == .notFound(unknown))
        #expect(applied[2] == .deleted(kept.subscription.id))
        #expect(try await store.subscriptions(of: ann).map(\.subscription.id.rawValue) == ["b"])
        #expect(try await store.head() == LogPosition(3))
    }

    static func ownership(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let bob = Sample.owner("bob")
        let elsewhere = Sample.owner("ann", Sample.otherContainer)
        var private_ = ann
        private_.database = .private
        let id: SubscriptionID = Sample.identifier("a")
        for owner in [ann, bob, elsewhere, private_] {
            // The owner comes from the request, whatever the value says.
            let subscription = Sample.subscription("a", artist: "artist-1", of: ann)
            let outcome = try await store.edit(
                [.create(subscription)], of: owner, atomicity: .independent, at: Sample.moment(0))
            #expect(outcome[0].savedVersion?.subscription.owner == owner.user)
            #expect(outcome[0].savedVersion?.subscription.container == owner.container)
        }
        let deleted = try await store.edit(
            [.delete(id)], of: bob, atomicity: .independent, at: Sample.moment(0))
        #expect(deleted == [.deleted(id)])
        #expect(try await store.subscriptions(of: bob) == [])
        for owner in [ann, elsewhere, private_] {
            #expect(try await store.subscriptions(of: owner).count == 1)
        }
    }

    static func activeVersions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let a1 = try await save(Sample.subscription("a", artist: "1", of: ann), in: store)
        _ = try await ShardLogConformance.append([Sample.unkeyed("x")], to: store)
        let a2 = try #require(
            try await edit(store, [.update(Sample.subscription("a", artist: "2", of: ann))])[0]
                .savedVersion)
        let b = try await save(Sample.subscription("b", artist: "3", of: ann), in: store)
        _ = try await edit(store, [.delete(a2.subscription.id)])
        let reopened = try await factory.reopen(store)
        let expected: [UInt64: [SubscriptionVersion]] = [
            0: [], 1: [a1], 2: [a1], 3: [a2], 4: [a2, b], 5: [b], 6: [b],
        ]
        for (position, versions) in expected {
            let active = try await reopened.subscriptions(
                activeAt: LogPosition(position), after: 0, limit: 10)
            #expect(active == versions, "at position \(position)")
        }
        let page = try await reopened.subscriptions(
            activeAt: LogPosition(4), after: a2.serial, limit: 10)
        #expect(page == [b])
        let first = try await reopened.subscriptions(
            activeAt: LogPosition(4), after: 0, limit: 1)
        #expect(first == [a2])
    }

    static func racingCreates(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let outcomes = try await withThrowingTaskGroup(
            of: SubscriptionEditOutcome.self
        ) { group in
            for number in 0..<32 {
                group.addTask {
                    try await edit(
                        store,
                        [.create(Sample.subscription("\(number)", artist: "same", of: ann))])[0]
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let saved = outcomes.compactMap(\.savedVersion)
        #expect(saved.count == 1)
        let expected = saved.map { SubscriptionEditOutcome.duplicate(of: $0.subscription.id) }
        #expect(outcomes.count { expected.contains($0) } == 31)
    }

    static func edit(
        _ store: any ConformingStore, _ edits: [SubscriptionEdit],
        _ atomicity: EditAtomicity = .independent
    ) async throws -> [SubscriptionEditOutcome] {
        try await store.edit(edits, of: ann, atomicity: atomicity, at: Sample.moment(9))
    }

    static func save(
        _ subscription: Subscription, in store: any ConformingStore
    ) async throws -> SubscriptionVersion {
        try #require(try await edit(store, [.create(subscription)])[0].savedVersion)
    }
}

extension SubscriptionEditOutcome {
    /// The version, if one was saved.
    var savedVersion: SubscriptionVersion? {
        if case .saved(let version) = self { version } else { nil }
    }
}
