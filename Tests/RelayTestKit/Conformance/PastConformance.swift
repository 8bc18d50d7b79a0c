import RelayModel
import Storage
import Testing

/// The contract of ``Storage/PastRegistry``.
package enum PastConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "ended versions are found as long as the log goes back, and no longer",
            check: versions),
        ConformanceCase("a once claim is found with the version that it ended", check: claims),
        ConformanceCase("the way in which a device ended can be read", check: endings),
        ConformanceCase(
            "changes are found by position and by record, back from a position", check: changes),
        ConformanceCase(
            "a search for changes stops when its turn ends, at any entry", check: turns),
        ConformanceCase(
            "unread changes are found in pages, without those that fire nothing", check: unread),
        ConformanceCase("the span of the past that can be read is reported", check: span),
        ConformanceCase(
            "changes are found by the ID of the delivery that brought them", check: sent),
    ]

    private static let ann = Sample.owner("ann")

    /// Moves the progress to the head, and prunes everything that nothing needs any more.
    private static func settle(
        _ store: any ConformingStore, keeping log: Duration? = nil
    ) async throws {
        let head = try await store.head()
        try await store.settle(
            SettledStep(
                from: try await store.mark(), to: ProgressMark(position: head, offset: 0)))
        var retention = Retention()
        retention.logAge = log
        _ = try await store.prune(retention, at: Sample.moment(100))
    }

    private static func save(
        _ subscription: Subscription, in store: any ConformingStore
    ) async throws -> SubscriptionVersion {
        let outcomes = try await store.edit(
            [.update(subscription)], of: ann, atomicity: .independent, at: Sample.moment(1))
        if case .saved(let version)? = outcomes.first { return version }
        let created = try await store.edit(
            [.create(subscription)], of: ann, atomicity: .independent, at: Sample.moment(1))
        guard case .saved(let version)? = created.first else { throw CancellationError() }
        return version
    }

    private static func append(
        _ names: String..., to store: any ConformingStore,
        of container: ContainerKey = Sample.container
    ) async throws -> LogPosition {
        let outcomes = try await store.append(
            names.map { Sample.unkeyed($0) }, container: container, source: Sample.source,
            at: Sample.moment(2))
        guard case .appended(let position)? = outcomes.last else { throw CancellationError() }
        return position
    }

    static func versions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await save(Sample.subscription("s", artist: "a", of: ann), in: store)
        let change = try await append("r", to: store)
        let second = try await save(Sample.subscription("s", artist: "b", of: ann), in: store)
        _ = try await store.edit(
            [.delete(first.subscription.id)], of: ann, atomicity: .independent,
            at: Sample.moment(3))
        let end = try await store.head()
        let told = [
            PastSubscription(version: second, ended: end),
            PastSubscription(version: first, ended: second.activation),
        ]
        let id = first.subscription.id
        #expect(try await store.pastSubscriptions(id, of: ann, limit: 9) == told)
        try await settle(store)
        let again = try await factory.reopen(store)
        #expect(try await again.pastSubscriptions(id, of: ann, limit: 9) == told)
        #expect(try await again.pastSubscriptions(id, of: ann, limit: 1) == [told[0]])
        #expect(try await again.pastSubscriptions(id, of: Sample.owner("bob"), limit: 9) == [])
        #expect(
            try await again.subscriptions(of: ann, judging: change, limit: 9) == [told[1]])
        #expect(
            try await again.pastSubscription(first.serial, of: Sample.container) == told[1])
        #expect(
            try await again.pastSubscription(first.serial, of: Sample.otherContainer) == nil)
        try await settle(again, keeping: .zero)
        #expect(try await again.pastSubscriptions(id, of: ann, limit: 9) == [])
    }

    static func claims(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let once = try await save(
            Sample.subscription("s", artist: "a", of: ann, once: true), in: store)
        let change = try await append("r", to: store)
        #expect(try await store.claimOnce([once.serial], at: change) == [once.serial])
        let told = PastSubscription(version: once, ended: change, claimed: change)
        #expect(told.judges(change) && !told.judges(LogPosition(change.rawValue + 1)))
        for _ in 0..<2 {
            #expect(
                try await store.subscriptions(of: ann, judging: change, limit: 9) == [told])
            try await settle(store)
        }
    }

    static func endings(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let container = Sample.container
        let user: UserID = Sample.identifier("ann")
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        let renewed = try await store.register(
            Sample.device("phone", of: "ann", token: 2), at: Sample.moment(2))
        _ = try await store.register(
            Sample.device("other", of: "bob", token: 2), at: Sample.moment(3))
        let pad = try await store.register(
            Sample.device("pad", of: "ann", token: 3), at: Sample.moment(4))
        _ = try await store.forgetDevice(
            pad.device.id, of: user, in: container, at: Sample.moment(5))
        let dead = try await store.register(
            Sample.device("watch", of: "ann", token: 4), at: Sample.moment(6))
        var receipt = Sample.receipt(7, .unregistered, reason: "Unregistered")
        receipt.deviceSerial = dead.serial
        let change = try await append("r", to: store)
        var step = SettledStep(
            from: try await store.mark(),
            to: ProgressMark(position: try await store.head(), offset: 0))
        step.receipts = [receipt]
        step.deadTokens = [
            DeadToken(container: container, token: Sample.token(4), since: Sample.moment(8))
        ]
        try await store.settle(step)
        for _ in 0..<2 {
            let all = try await store.pastDevices(
                of: user, in: container, .endedBefore(LogPosition(.max >> 1), limit: 9))
            #expect(all.map(\.serial) == [phone, renewed, pad, dead].map(\.serial))
            let causes = try await Self.causes(of: all, in: store)
            #expect(causes == [.renewed, .takenOver, .signedOut, .declaredDead(receipt)])
            #expect(
                try await store.pastDevices(of: user, in: container, .hearing(change))
                    .map(\.serial) == [dead.serial])
            #expect(
                try await store.pastDevices(
                    of: user, in: container, .named(phone.device.id, limit: 9)
                ).map(\.serial) == [phone.serial, renewed.serial])
            try await settle(store)
        }
    }

    private static func causes(
        of devices: [PastDevice], in store: any ConformingStore
    ) async throws -> [DeviceEnding.Cause?] {
        var causes: [DeviceEnding.Cause?] = []
        for device in devices {
            let ended = try #require(device.ended)
            causes.append(try await store.ending(ofDevice: device.serial, at: ended)?.cause)
        }
        return causes
    }

    static func sent(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let keys: [(DedupeKey.Kind, String)] = [
            (.delivery, "m#1"), (.delivery, "m#0/2"), (.delivery, "m"), (.delivery, "m1"),
            (.delivery, "m#x"), (.delivery, "m#1/"), (.delivery, "M"), (.position, "m"),
            (.content, "m/1"), (.delivery, "m/3"),
        ]
        let outcomes = try await store.append(
            keys.enumerated().map { Sample.keyed("r\($0)", $1.0, $1.1) },
            container: Sample.container, source: Sample.source, at: Sample.moment(2))
        let positions = outcomes.map { outcome -> LogPosition? in
            if case .appended(let position) = outcome { position } else { nil }
        }
        func found(
            _ id: String = "m", in container: ContainerKey = Sample.container, limit: Int = 9,
            source: String = "\(Sample.source)", at seconds: Int64 = 3
        ) async throws -> [LogPosition?] {
            try await store.appendedChanges(
                ofDelivery: id, from: Sample.identifier(source), in: container,
                at: Sample.moment(seconds), limit: limit
            ).map(\.position)
        }
        #expect(
            try await found() == [positions[0], positions[1], positions[2], positions[9]])
        #expect(try await found(limit: 1).count == 1)
        #expect(try await found("m1") == [positions[3]])
        #expect(try await found("n") == [])
        #expect(try await found(in: Sample.otherContainer) == [])
        #expect(try await found(source: "other") == [])
        #expect(try await found(at: 4_000_000) == [], "they are forgotten")
    }

    static func changes(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await append("a", to: store)
        _ = try await append("a", to: store, of: Sample.otherContainer)
        let last = try await append("b", "a", to: store)
        let found = try #require(
            try await store.pastChange(at: first, of: Sample.container))
        #expect(found.change == Sample.change("a") && found.source == Sample.source)
        #expect(found.appendedAt == Sample.moment(2) && !found.isStale)
        #expect(try await store.pastChange(at: first, of: Sample.otherContainer) == nil)
        #expect(try await store.moments(of: [first, LogPosition(99)]) == [first: Sample.moment(2)])
        var search = PastSearch(
            of: Sample.container, before: LogPosition(99), entries: 99, limit: 9,
            recordName: Sample.identifier("a"))
        #expect(try await Self.positions(search, in: store) == [last, first])
        search.limit = 1
        #expect(try await Self.positions(search, in: store) == [last])
        search.limit = 9
        search.before = last
        #expect(try await Self.positions(search, in: store) == [first])
        search.entries = 1
        #expect(try await Self.positions(search, in: store) == [])
        search.recordType = Sample.identifier("Artist")
        search.entries = 99
        #expect(try await Self.positions(search, in: store) == [])
        try await store.quarantine(
            UnreadableEntry(position: first, isChange: true, reason: "why"), at: Sample.moment(3))
        #expect(
            try await store.pastChange(at: first, of: Sample.container)?.setAside == "why")
        #expect(
            try await store.backlog().newestSetAside
                == SetAsideChange(container: Sample.container, position: first, reason: "why"))
        // The newest is the change that was set aside last, not the one that is last in the log.
        try await store.quarantine(
            UnreadableEntry(position: last, isChange: true, reason: "before"),
            at: Sample.moment(2))
        #expect(try await store.backlog().newestSetAside?.position == first)
    }

    /// A search whose turn is over ends after one entry, even if the entry is of another
    /// container.
    static func turns(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let first = try await append("a", to: store)
        _ = try await append("a", to: store, of: Sample.otherContainer)
        let last = try await append("b", "a", to: store)
        var search = PastSearch(
            of: Sample.container, before: LogPosition(5), entries: 99, limit: 9,
            recordName: Sample.identifier("a"))
        var found: [LogPosition] = []
        var ends: [LogPosition] = []
        for _ in 0..<4 {
            let page = try await store.pastChanges(search) { { true } }
            let same = try await store.loggedChanges(search) { { true } }
            #expect(same.before == page.before)
            #expect(same.changes.map(\.position) == page.changes.map(\.position))
            found += page.changes.map(\.position)
            ends.append(page.before)
            search.before = page.before
        }
        #expect(found == [last, first])
        #expect(ends == [4, 3, 2, 1].map { LogPosition($0) })
        #expect(try await Self.page(search, in: store).before == LogPosition(1))
    }

    private static func positions(
        _ search: PastSearch, in store: any ConformingStore
    ) async throws -> [LogPosition] {
        try await store.pastChanges(search) { { false } }.changes.map(\.position)
    }

    private static func page(
        _ search: PastSearch, in store: any ConformingStore
    ) async throws -> LoggedChangePage {
        try await store.loggedChanges(search) { { false } }
    }

    static func unread(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var told = Sample.change("a")
        told.readers = ["ann"]
        told.origin.deviceID = Sample.identifier("phone")
        _ = try await append("a", to: store, of: Sample.otherContainer)
        _ = try await append("b", "c", to: store)
        _ = try await store.append(
            [ChangeToAppend(told, key: nil)], container: Sample.container, source: Sample.source,
            at: Sample.moment(2))
        var search = PastSearch(
            of: Sample.container, before: LogPosition(99), entries: 99, limit: 2)
        let first = try await Self.page(search, in: store)
        #expect(first.changes.map(\.position.rawValue) == [4, 3])
        #expect(first.changes.map(\.mayNameReaders) == [true, false])
        #expect(first.changes.map(\.mayNameOrigin) == [true, false])
        #expect(try first.changes[0].change.change() == told)
        #expect(first.changes[0].appendedAt == Sample.moment(2))
        #expect(first.changes[0].source == Sample.source)
        #expect(first.before == LogPosition(3))
        search.before = first.before
        let second = try await Self.page(search, in: store)
        #expect(second.changes.map(\.position.rawValue) == [2])
        #expect(second.before == LogPosition(1))
        search.entries = 1
        #expect(try await Self.page(search, in: store).before == LogPosition(2))
        search.entries = 99
        search.recordType = Sample.identifier("Artist")
        #expect(try await Self.page(search, in: store).changes == [])
        search.recordType = nil
        try await store.quarantine(
            UnreadableEntry(position: LogPosition(2), isChange: true, reason: "why"),
            at: Sample.moment(3))
        #expect(try await Self.page(search, in: store).changes == [])
    }

    static func span(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        #expect(
            try await store.pastSpan()
                == PastSpan(
                    first: LogPosition(1), head: .start, settled: .start, endedFrom: .start,
                    receiptsFrom: LogPosition(1)))
        let position = try await append("a", "b", to: store)
        try await settle(store, keeping: .zero)
        let span = try await store.pastSpan()
        #expect(span.head == position && span.settled == position)
        #expect(span.first == LogPosition(position.rawValue + 1))
    }
}
