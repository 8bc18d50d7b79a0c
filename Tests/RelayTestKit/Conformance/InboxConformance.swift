import RelayModel
import Storage
import Testing

/// The contract of ``Storage/InboxRegistry`` and ``Storage/SessionRegistry``.
package enum InboxConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase(
            "an inbox is written with the progress, or not at all", check: withProgress),
        ConformanceCase(
            "a notification that a crash repeats is in the inbox once", check: repeated),
        ConformanceCase("an inbox is read in pages, to the end", check: paging),
        ConformanceCase("marking read moves a notification to the end", check: marking),
        ConformanceCase("only its owner reads an inbox", check: ownership),
        ConformanceCase("a watcher of an inbox is notified of writes", check: news),
        ConformanceCase("a device is not notified of its own changes", check: ownChanges),
        ConformanceCase("a client is not notified of its own changes", check: ownClient),
        ConformanceCase("reading on after a dropped notification is refused", check: dropping),
        ConformanceCase("a session is started once, and ends when revoked", check: sessions),
    ]

    private static let ann = InboxOwner(
        container: Sample.container, user: Sample.identifier("ann"))
    private static let bob = InboxOwner(
        container: Sample.container, user: Sample.identifier("bob"))

    /// Returns the notification of the change at `position` by a subscription.
    private static func entry(
        _ position: UInt64, by serial: UInt64 = 1, of owner: InboxOwner = ann,
        in database: DatabaseScope = .public, from device: String? = nil
    ) -> InboxEntry {
        InboxEntry(
            owner: owner, position: LogPosition(position), subscriptionSerial: serial,
            subscriptionID: Sample.identifier("s\(serial)"), database: database,
            notificationID: UUIDBytes(high: 7, low: position),
            originDevice: device.map { Sample.identifier($0) }, payload: Array("{}".utf8),
            at: Sample.moment(Int64(position)))
    }

    private static func step(
        _ entries: [InboxEntry], from: UInt64 = 0, to: UInt64 = 1
    ) -> SettledStep {
        var step = SettledStep(
            from: ProgressMark(position: LogPosition(from), offset: 0),
            to: ProgressMark(position: LogPosition(to), offset: 0))
        step.inbox = entries
        return step
    }

    /// Lists the notifications after `sequence` as `position.serial`, with an `r` for those that
    /// are read.
    private static func list(
        _ owner: InboxOwner, in store: any ConformingStore, after sequence: UInt64 = 0,
        limit: Int = 100, database: DatabaseScope? = nil, device: String? = nil
    ) async throws -> (texts: [String], next: UInt64, isComplete: Bool)? {
        var request = InboxRequest(owner: owner, database: database, limit: limit)
        request.after = sequence
        request.device = device.map { Sample.identifier($0) }
        let reading = try await store.notifications(request)
        guard case .page(let page, let next, let isComplete) = reading else { return nil }
        let texts = page.map {
            "\($0.position).\($0.subscriptionID.rawValue.dropFirst())\($0.readAt == nil ? "" : "r")"
        }
        return (texts, next, isComplete)
    }

    static func withProgress(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        await #expect(throws: StorageError.progressMoved(.start)) {
            try await store.settle(step([entry(1)], from: 5, to: 6))
        }
        #expect(try await list(ann, in: store)?.texts == [])
        try await store.settle(step([entry(1), entry(1, by: 2)]))
        let reopened = try await factory.reopen(store)
        #expect(try await list(ann, in: reopened)?.texts == ["1.1", "1.2"])
    }

    static func news(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var heard = store.inboxNews(of: ann).makeAsyncIterator()
        var others = store.inboxNews(of: bob).makeAsyncIterator()
        try await store.settle(step([entry(1), entry(1, by: 2)]))
        // News from before anybody listened is kept, and reported once.
        #expect(await heard.next() != nil)
        try await store.keep([entry(2)])
        #expect(await heard.next() != nil)
        _ = try await store.markNotificationsRead(
            [UUIDBytes(high: 7, low: 1)], of: ann, at: Sample.moment(9))
        #expect(await heard.next() != nil)
        try await store.keep([entry(3, of: bob)])
        #expect(await others.next() != nil)
    }

    static func repeated(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(step([entry(1), entry(2)], to: 0))
        try await store.settle(step([entry(1), entry(2), entry(3)], to: 0))
        let page = try #require(try await list(ann, in: store))
        #expect(page.texts == ["1.1", "2.1", "3.1"])
        #expect(page.next == 3)
    }

    static func paging(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(
            step((1...5).map { entry($0, in: $0 == 3 ? .private : .public) }))
        var after: UInt64 = 0
        var pages: [[String]] = []
        while let page = try await list(ann, in: store, after: after, limit: 2) {
            pages.append(page.texts)
            after = page.next
            if page.isComplete { break }
        }
        #expect(pages == [["1.1", "2.1"], ["3.1", "4.1"], ["5.1"]])
        let end = try #require(try await list(ann, in: store, after: after))
        #expect(end.texts == [])
        #expect(end.next == after)
        #expect(try await list(ann, in: store, database: .private)?.texts == ["3.1"])
        #expect(try await list(ann, in: store, database: .private)?.next == 5)
        #expect(try await list(ann, in: store, after: 6) == nil)
    }

    static func marking(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(step([entry(1), entry(1, by: 2), entry(2)]))
        let before = try #require(try await list(ann, in: store)).next
        let id = UUIDBytes(high: 7, low: 1)
        let unknown = UUIDBytes(high: 7, low: 99)
        let known = try await store.markNotificationsRead(
            [id, unknown], of: ann, at: Sample.moment(50))
        #expect(known == [id])
        #expect(try await list(ann, in: store, after: before)?.texts == ["1.1r", "1.2r"])
        #expect(try await list(ann, in: store)?.texts == ["2.1", "1.1r", "1.2r"])
        let after = try #require(try await list(ann, in: store)).next
        _ = try await store.markNotificationsRead([id], of: ann, at: Sample.moment(60))
        #expect(try await list(ann, in: store, after: after)?.texts == [])
    }

    static func ownership(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(step([entry(1), entry(1, by: 2, of: bob)]))
        #expect(try await list(ann, in: store)?.texts == ["1.1"])
        #expect(try await list(bob, in: store)?.texts == ["1.2"])
        let id = UUIDBytes(high: 7, low: 1)
        _ = try await store.markNotificationsRead([id], of: bob, at: Sample.moment(9))
        #expect(try await list(ann, in: store)?.texts == ["1.1"])
        let elsewhere = InboxOwner(container: Sample.otherContainer, user: ann.user)
        #expect(try await list(elsewhere, in: store)?.texts == [])
        #expect(
            try await store.markNotificationsRead([id], of: elsewhere, at: Sample.moment(9)) == [])
    }

    static func ownChanges(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(step([entry(1), entry(2, from: "phone"), entry(3, from: "pad")]))
        #expect(try await list(ann, in: store, device: "phone")?.texts == ["1.1", "3.1"])
        #expect(try await list(ann, in: store)?.texts == ["1.1", "2.1", "3.1"])
    }

    /// All devices of one client count as one, both as origin of a change and as reader.
    static func ownClient(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let names = ["page", "page~token-0a1b2c3d", "pages", "page~token-0a1b", nil]
        try await store.settle(
            step(names.enumerated().map { entry(UInt64($0.offset + 1), from: $0.element) }))
        for device in ["page", "page~token-0a1b2c3d", "page~token-ffffffff"] {
            let page = try #require(try await list(ann, in: store, device: device))
            #expect(page.texts == ["3.1", "4.1", "5.1"])
            #expect(page.isComplete && page.next == 5)
            let first = try #require(try await list(ann, in: store, limit: 2, device: device))
            #expect(first.texts == ["3.1", "4.1"] && first.next == 4 && !first.isComplete)
        }
    }

    static func dropping(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(step((1...6).map { entry($0) }))
        _ = try await store.markNotificationsRead(
            [UUIDBytes(high: 7, low: 2)], of: ann, at: Sample.moment(90))
        let count = try await store.pruneInboxes(unchangedSince: Sample.moment(4), count: 100)
        #expect(count == 3)
        #expect(try await list(ann, in: store)?.texts == ["5.1", "6.1", "2.1r"])
        #expect(try await list(ann, in: store, after: 3) == nil)
        #expect(try await list(ann, in: store, after: 4)?.texts == ["5.1", "6.1", "2.1r"])
    }

    static func sessions(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let session = UserSession(
            id: UUIDBytes(high: 1, low: 1), container: Sample.container,
            user: Sample.identifier("ann"), startedAt: Sample.moment(1),
            endsAt: Sample.moment(100))
        #expect(try await store.startSession(session) == session)
        var later = session
        later.startedAt = Sample.moment(50)
        later.endsAt = Sample.moment(150)
        #expect(try await store.startSession(later) == session)
        later.startedAt = Sample.moment(120)
        #expect(try await store.startSession(later) == later)
        #expect(try await store.session(session.id, of: Sample.otherContainer) == nil)
        try await store.revokeSession(session, at: Sample.moment(130))
        let reopened = try await factory.reopen(store)
        later.revokedAt = Sample.moment(130)
        #expect(try await reopened.session(session.id, of: Sample.container) == later)
        #expect(try await reopened.startSession(session) == later)
        let others = (2...5).map { number in
            UserSession(
                id: UUIDBytes(high: 1, low: number), container: Sample.container,
                user: Sample.identifier("ann"), startedAt: Sample.moment(Int64(number)),
                endsAt: Sample.moment(1000))
        }
        for other in others { _ = try await reopened.startSession(other) }
        #expect(try await reopened.revokeSessions(of: ann, at: Sample.moment(140)) == 4)
        #expect(try await reopened.pruneSessions(at: Sample.moment(999), limit: 9) == 1)
        #expect(
            try await reopened.sessions(
                of: Sample.container, user: ann.user, at: Sample.moment(999), limit: 9
            ).map(\.id.low) == [5, 4, 3, 2])
        #expect(
            try await reopened.sessions(
                of: Sample.container, user: nil, at: Sample.moment(999), limit: 2
            ).map(\.id.low) == [5, 4])
        #expect(try await reopened.sessionSecret().count == 32)
    }
}
