package import RelayModel
import Storage
import Testing

/// The contract of ``Storage/ShardProgress``.
package enum ProgressConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("the progress moves only from the current mark", check: compareAndSet),
        ConformanceCase("a refused step records nothing", check: refusedStep),
        ConformanceCase(
            "one of several racing steps from the same mark succeeds", check: racingSteps),
        ConformanceCase("retries come due in order, without those excluded", check: retries),
        ConformanceCase("lanes of retries take turns, and a held lane is skipped", check: lanes),
        ConformanceCase("retries that collapse are found newest first", check: collapsing),
        ConformanceCase("a retry is replaced, ended, or becomes a dead letter", check: endings),
        ConformanceCase("a retry reads as it was settled", check: retryRoundTrip),
        ConformanceCase("a dead token ends earlier registrations only", check: deadTokens),
        ConformanceCase("badges are as the last step left them", check: badges),
        ConformanceCase("a badge is removed with its device", check: endedBadges),
        ConformanceCase("a once subscription is claimed for one change", check: claims),
        ConformanceCase("one of several racing claims wins", check: racingClaims),
        ConformanceCase("an ended version is still owed for earlier changes", check: lateClaims),
        ConformanceCase("receipts are found by every part of a filter", check: receipts),
    ]

    static func compareAndSet(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        try await store.settle(SettledStep(from: .start, to: mark(0, 300)))
        try await store.settle(SettledStep(from: mark(0, 300), to: mark(4, 0)))
        #expect(try await store.mark() == mark(4, 0))
        await #expect(throws: StorageError.progressMoved(mark(4, 0))) {
            try await store.settle(SettledStep(from: mark(0, 300), to: mark(5, 0)))
        }
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.mark() == mark(4, 0))
        try await reopened.settle(SettledStep(from: mark(4, 0), to: mark(4, 0)))
    }

    static func refusedStep(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let device = Sample.device("phone", of: "ann", token: 1)
        let version = try await store.register(device, at: Sample.moment(1))
        var step = SettledStep(from: mark(7, 0), to: mark(8, 0))
        step.receipts = [Sample.receipt(1, .accepted)]
        step.retries = [retry(1, dueAt: 1)]
        step.deadLetters = [letter(2)]
        step.deadTokens = [deadToken(device, since: 100)]
        step.badges = [holder(of: device): 4]
        await #expect(throws: StorageError.progressMoved(.start)) { try await store.settle(step) }
        #expect(try await store.receipts(matching: ReceiptFilter(), limit: 9) == [])
        #expect(try await store.retries(of: Sample.container, limit: 9) == [])
        #expect(try await store.deadLetters(of: Sample.container, reason: nil, limit: 9) == [])
        #expect(
            try await store.devices(of: Sample.container, owner: nil, limit: 9) == [version])
        #expect(try await store.badges() == [:])
        #expect(try await store.head() == LogPosition(1))
    }

    static func racingSteps(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let winners = await withTaskGroup(of: UInt64?.self) { group in
            for target in 1...16 as ClosedRange<UInt64> {
                group.addTask {
                    let step = SettledStep(from: .start, to: mark(target, 0))
                    return (try? await store.settle(step)).map { target }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
        }
        #expect(winners.count == 1)
        #expect(try await store.mark().position.rawValue == winners.first)
    }

    static func retries(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        #expect(try await store.nextRetryDue(excluding: [], unless: Self.none) == nil)
        var step = SettledStep(from: .start, to: .start)
        step.retries = [retry(1, dueAt: 30), retry(2, dueAt: 10), retry(3, dueAt: 20)]
        try await store.settle(step)
        func due(at seconds: Int64, _ limit: Int, _ excluded: [UInt64]) async throws -> [Retry] {
            try await store.dueRetries(
                at: Sample.moment(seconds), limit: limit,
                excluding: Set(excluded.map(Sample.deliveryID)), unless: Self.none)
        }
        #expect(try await due(at: 9, 10, []) == [])
        #expect(try await due(at: 20, 10, []) == [step.retries[1], step.retries[2]])
        #expect(try await due(at: 99, 2, []) == [step.retries[1], step.retries[2]])
        #expect(try await due(at: 99, 1, [2]) == [step.retries[2]])
        #expect(try await due(at: 99, 10, [1, 2, 3]) == [])
        #expect(try await store.nextRetryDue(excluding: [], unless: Self.none) == Sample.moment(10))
        let next = try await store.nextRetryDue(
            excluding: [Sample.deliveryID(2)], unless: Self.none)
        #expect(next == Sample.moment(20))
        let all = try await store.retries(of: Sample.container, limit: 2)
        #expect(all == [step.retries[1], step.retries[2]])
        #expect(try await store.retries(of: Sample.otherContainer, limit: 2) == [])
    }

    @Sendable private static func none(_ lane: RetryLane) -> Bool { false }

    static func lanes(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        // Twenty retries for one topic that fall due first, and two for another topic.
        step.retries = (1...20).map { retry($0, dueAt: Int64($0)) }
        for number: UInt64 in 21...22 {
            var other = retry(number, dueAt: 50)
            other.delivery.delivery.notification.topic = "com.example.other"
            step.retries.append(other)
        }
        try await store.settle(step)
        let crowd = RetryLane(of: step.retries[0].delivery.delivery)
        func due(
            _ limit: Int, unless isHeld: @escaping @Sendable (RetryLane) -> Bool
        ) async throws -> [UInt64] {
            let due = try await store.dueRetries(
                at: Sample.moment(99), limit: limit, excluding: [], unless: isHeld)
            return due.map { UInt64($0.delivery.delivery.ordinal.offset) }
        }
        #expect(try await due(4, unless: Self.none) == [1, 2, 21, 22])
        #expect(try await due(8, unless: Self.none) == [1, 2, 3, 4, 5, 6, 21, 22])
        #expect(try await due(8) { $0 == crowd } == [21, 22])
        #expect(try await due(8) { _ in true } == [])
        let next = try await store.nextRetryDue(excluding: []) { $0 == crowd }
        #expect(next == Sample.moment(50))
        #expect(try await store.nextRetryDue(excluding: []) { _ in true } == nil)
    }

    static func collapsing(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        step.retries = (1...4).map { retry($0, dueAt: 1) }
        for index in step.retries.indices {
            step.retries[index].delivery.delivery.ordinal = DeliveryOrdinal(
                position: LogPosition(UInt64(index) + 1), offset: 0)
        }
        for index in [0, 2] {
            step.retries[index].delivery.delivery.collapsingRecord = RecordID(
                recordName: Sample.identifier("art-1"))
        }
        try await store.settle(step)
        let reopened = try await factory.reopen(store)
        #expect(
            try await reopened.collapsingRetries(limit: 9) == [step.retries[2], step.retries[0]])
        #expect(try await reopened.collapsingRetries(limit: 1) == [step.retries[2]])
    }

    static func endings(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        step.retries = [retry(1, dueAt: 1), retry(2, dueAt: 2), retry(3, dueAt: 3)]
        try await store.settle(step)
        var second = SettledStep(from: .start, to: .start)
        second.retries = [retry(1, dueAt: 50, attempts: 2)]
        second.endedRetries = [Sample.deliveryID(2), Sample.deliveryID(9)]
        second.deadLetters = [letter(3)]
        try await store.settle(second)
        #expect(try await store.retries(of: Sample.container, limit: 9) == second.retries)
        let letters = try await store.deadLetters(of: Sample.container, reason: nil, limit: 9)
        #expect(letters == second.deadLetters)
    }

    static func retryRoundTrip(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        var plain = retry(2, dueAt: 2)
        plain.delivery.delivery.badge = nil
        plain.delivery.delivery.notification.collapseID = nil
        plain.delivery.delivery.notification.expiration = nil
        plain.delivery.delivery.notification.pushType = .background
        plain.reason = .devicePace
        var quoted = retry(3, dueAt: 3)
        quoted.reason = .said("too many pushes for this device")
        step.retries = [retry(1, dueAt: 1), plain, quoted]
        try await store.settle(step)
        let reopened = try await factory.reopen(store)
        let due = try await reopened.dueRetries(
            at: Sample.moment(9), limit: 9, excluding: [], unless: Self.none)
        #expect(due == step.retries)
    }

    static func deadTokens(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let old = try await store.register(
            Sample.device("old", of: "ann", token: 1), at: Sample.moment(10))
        let new = try await store.register(
            Sample.device("new", of: "ann", token: 2), at: Sample.moment(30))
        let elsewhere = try await store.register(
            Sample.device("old", of: "ann", token: 1, in: Sample.otherContainer),
            at: Sample.moment(10))
        var step = SettledStep(from: .start, to: mark(3, 0))
        step.deadTokens = [deadToken(old.device, since: 20), deadToken(new.device, since: 20)]
        step.receipts = [Sample.receipt(40, .unregistered)]
        try await store.settle(step)
        #expect(try await store.devices(of: Sample.container, owner: nil, limit: 9) == [new])
        #expect(
            try await store.devices(of: Sample.otherContainer, owner: nil, limit: 9)
                == [elsewhere])
        let entries = try await store.entries(after: LogPosition(3), limit: 9)
        #expect(entries.map(\.body) == [.devicesEnded(serials: [old.serial])])
        #expect(entries.map(\.container) == [Sample.container])
        let atThree = try await store.devices(activeAt: LogPosition(3), after: 0, limit: 9)
        #expect(atThree == [old, new, elsewhere])
        let atFour = try await store.devices(activeAt: LogPosition(4), after: 0, limit: 9)
        #expect(atFour == [new, elsewhere])
    }

    static func badges(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let phone = Sample.device("phone", of: "ann", token: 1)
        _ = try await store.register(phone, at: Sample.moment(1))
        var step = SettledStep(from: .start, to: mark(1, 0))
        step.badges = [holder(of: phone): 1]
        try await store.settle(step)
        step = SettledStep(from: mark(1, 0), to: mark(2, 0))
        step.badges = [holder(of: phone): 5]
        try await store.settle(step)
        #expect(try await factory.reopen(store).badges() == [holder(of: phone): 5])
    }

    static func endedBadges(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let phone = Sample.device("phone", of: "ann", token: 1)
        let pad = Sample.device("pad", of: "ann", token: 2)
        _ = try await store.register(phone, at: Sample.moment(1))
        _ = try await store.register(pad, at: Sample.moment(1))
        var step = SettledStep(from: .start, to: mark(2, 0))
        step.badges = [holder(of: phone): 3, holder(of: pad): 4]
        step.deadTokens = [deadToken(phone, since: 20)]
        try await store.settle(step)
        #expect(try await store.badges() == [holder(of: pad): 4])
        // A push to the phone was on its way when its token died, so its badge is settled late. The
        // pad keeps its badge although it gets another token.
        _ = try await store.register(
            Sample.device("pad", of: "ann", token: 3), at: Sample.moment(30))
        step = SettledStep(from: mark(2, 0), to: mark(4, 0))
        step.badges = [holder(of: phone): 5]
        try await store.settle(step)
        let counts = try await store.prune(Retention(), at: Sample.moment(100))
        #expect(counts.endedVersions == 2)
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.badges() == [holder(of: pad): 4])
    }

    static func claims(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let version = try await once("a", in: store)
        let early = try await store.claimOnce([version.serial], at: version.activation)
        #expect(early == [])
        let claimed = try await store.claimOnce([version.serial, 999], at: LogPosition(5))
        #expect(claimed == [version.serial])
        let reopened = try await factory.reopen(store)
        #expect(
            try await reopened.claimOnce([version.serial], at: LogPosition(5))
                == [version.serial])
        #expect(try await reopened.claimOnce([version.serial], at: LogPosition(6)) == [])
        #expect(try await reopened.subscriptions(of: SubscriptionConformance.ann) == [])
        let before = try await reopened.subscriptions(
            activeAt: LogPosition(4), after: 0, limit: 9)
        #expect(before == [version])
        let after = try await reopened.subscriptions(
            activeAt: LogPosition(5), after: 0, limit: 9)
        #expect(after == [])
        // The name and the content of the subscription are free again.
        _ = try await SubscriptionConformance.save(version.subscription, in: reopened)
    }

    static func racingClaims(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var serials: [UInt64] = []
        for number in 0..<8 { serials.append(try await once("\(number)", in: store).serial) }
        let wanted = serials
        let wins = try await withThrowingTaskGroup(of: Set<UInt64>.self) { group in
            for position in 100..<164 as Range<UInt64> {
                group.addTask {
                    try await store.claimOnce(wanted, at: LogPosition(position))
                }
            }
            return try await group.reduce(into: []) { $0 += Array($1) }
        }
        // However the claims arrive, no version is claimed for two changes.
        #expect(wins.sorted() == serials)
    }

    static func lateClaims(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let version = try await once("a", in: store)
        _ = try await ShardLogConformance.append([Sample.unkeyed("x")], to: store)
        _ = try await SubscriptionConformance.edit(store, [.delete(version.subscription.id)])
        #expect(try await store.claimOnce([version.serial], at: LogPosition(4)) == [])
        #expect(
            try await store.claimOnce([version.serial], at: LogPosition(2)) == [version.serial])
        let active = try await store.subscriptions(activeAt: LogPosition(2), after: 0, limit: 9)
        #expect(active == [])
    }

    static func receipts(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var all: [DeliveryReceipt] = []
        var from = ProgressMark.start
        for block in 0..<4 as Range<UInt64> {
            var step = SettledStep(from: from, to: mark(block + 1, 0))
            step.receipts = (0..<50).map { index in
                Sample.receipt(
                    block * 50 + index, index.isMultiple(of: 7) ? .deferred : .accepted,
                    at: block + 1, reason: index.isMultiple(of: 7) ? "TooManyRequests" : "")
            }
            all += step.receipts
            try await store.settle(step)
            from = step.to
        }
        let reopened = try await factory.reopen(store)
        let newestFirst = Array(all.reversed())
        func expect(
            _ isWanted: (DeliveryReceipt) -> Bool, _ set: (inout ReceiptFilter) -> Void
        ) async throws {
            var filter = ReceiptFilter()
            set(&filter)
            let found = try await reopened.receipts(matching: filter, limit: 1000)
            #expect(found == newestFirst.filter(isWanted))
            let few = try await reopened.receipts(matching: filter, limit: 1)
            #expect(few == Array(newestFirst.filter(isWanted).prefix(1)))
        }
        try await expect({ _ in true }, { _ in })
        try await expect(
            { $0.deliveryID == Sample.deliveryID(77) }, { $0.deliveryID = Sample.deliveryID(77) })
        try await expect(
            { $0.ordinal.position == LogPosition(2) }, { $0.position = LogPosition(2) })
        try await expect({ $0.subscriptionSerial == 2 }, { $0.subscriptionSerial = 2 })
        try await expect({ $0.deviceSerial == 4 }, { $0.deviceSerial = 4 })
        try await expect({ $0.outcome == .deferred }, { $0.outcome = .deferred })
        try await expect({ _ in false }, { $0.outcome = .dead })
    }

    static func mark(_ position: UInt64, _ offset: UInt32) -> ProgressMark {
        ProgressMark(position: LogPosition(position), offset: offset)
    }

    package static func retry(_ number: UInt64, dueAt seconds: Int64, attempts: UInt16 = 1) -> Retry
    {
        Retry(
            delivery: Sample.owed(number), attempts: attempts, dueAt: Sample.moment(seconds),
            reason: .said("TooManyRequests"))
    }

    package static func letter(_ number: UInt64, reason: String = "BadDeviceToken") -> DeadLetter {
        DeadLetter(
            delivery: Sample.owed(number), attempts: 3, status: 400, reason: reason,
            at: Sample.moment(Int64(number)))
    }

    static func deadToken(_ device: Device, since seconds: Int64) -> DeadToken {
        DeadToken(
            container: device.container, token: device.token, since: Sample.moment(seconds))
    }

    static func holder(of device: Device) -> BadgeHolder {
        BadgeHolder(container: device.container, deviceID: device.id, owner: device.owner)
    }

    private static func once(
        _ id: String, in store: any ConformingStore
    ) async throws -> SubscriptionVersion {
        try await SubscriptionConformance.save(
            Sample.subscription(id, artist: id, of: SubscriptionConformance.ann, once: true),
            in: store)
    }
}
