import RelayModel
import Storage
import Testing

/// The contract of ``Storage/ShardProgress`` about deliveries that are held back.
enum HeldConformance {
    static let cases = [
        ConformanceCase(
            "the current settings are found by subscription ID and device token", check: settings),
        ConformanceCase(
            "a held delivery is a retry until there are too many, and then joins a digest",
            check: overflow),
        ConformanceCase("the held retries of one user are bounded", check: rowsOfUser),
        ConformanceCase(
            "the digests of one user are bounded, and then shared by subscriptions",
            check: digestsOfUser),
        ConformanceCase(
            "a held delivery is listed whatever its subscription is called", check: markedName),
        ConformanceCase("a digest is closed only if it is as it was read", check: closing),
        ConformanceCase("an edit makes held deliveries due", check: release),
        ConformanceCase("an edited digest ends by its new span", check: digestEdits),
        ConformanceCase(
            "deliveries that wait for a connection are released by ID", check: connected),
        ConformanceCase(
            "a delivery that was judged before an edit is judged again", check: outdated),
        ConformanceCase("the fate of a delivery in a digest can be read", check: fates),
        ConformanceCase(
            "the places of a throttle are known as long as they count", check: throttles),
        ConformanceCase("a device keeps its settings until it sends others", check: kept),
        ConformanceCase("an expired subscription ends a day later", check: expiry),
    ]

    // MARK: A user with a subscription and a device

    struct Bench {
        let store: any ConformingStore
        var subscription: SubscriptionVersion
        var device: DeviceVersion

        init(_ factory: any StoreFactory) async throws {
            store = try await factory.makeReadyStore()
            var wanted = Sample.subscription("artworks", artist: "a", of: Sample.owner("ann"))
            wanted.kindness.isPaused = true
            subscription = try await Self.edited(.create(wanted), store)
            device = try await store.register(
                Sample.device("phone", of: "ann", token: 7), at: Sample.moment(1))
        }

        static func edited(
            _ edit: SubscriptionEdit, _ store: any ConformingStore, at seconds: Int64 = 1
        ) async throws -> SubscriptionVersion {
            let outcomes = try await store.edit(
                [edit], of: Sample.owner("ann"), atomicity: .independent,
                at: Sample.moment(seconds))
            guard case .saved(let version)? = outcomes.first else {
                throw StorageError.inaccessible(path: "", reason: "\(outcomes)")
            }
            return version
        }

        /// Returns a delivery that is held back.
        func held(
            _ number: UInt64, at seconds: Int64 = 10, until dueAt: Int64 = 1000,
            _ reason: HoldReason = .paused
        ) -> Retry {
            var owed = Sample.owed(number)
            var delivery = owed.delivery
            delivery = Delivery(
                id: delivery.id, ordinal: delivery.ordinal, container: delivery.container,
                subscriptionID: subscription.subscription.id,
                owner: subscription.subscription.owner, device: device.device,
                registeredAt: delivery.registeredAt, appendedAt: delivery.appendedAt,
                notification: delivery.notification)
            delivery.isOnce = false
            delivery.database = .public
            owed = OwedDelivery(
                delivery, subscriptionSerial: subscription.serial, deviceSerial: device.serial)
            var retry = Retry(
                delivery: owed, attempts: 0, dueAt: Sample.moment(dueAt), reason: .held(reason))
            retry.decidedAt = Sample.moment(seconds)
            retry.judgedBy = JudgedVersions(
                subscription: subscription.serial, device: device.serial)
            return retry
        }

        /// Settles retries for deliveries that are held back.
        func hold(_ retries: [Retry]) async throws {
            var step = SettledStep(from: .start, to: .start)
            step.retries = retries
            step.tallies = [Sample.container: DeliveryTally(owed: retries.count)]
            try await store.settle(step)
            try await expectBalance()
        }

        func expectBalance() async throws {
            for account in try await store.accounts() { #expect(account.difference == 0) }
        }

        func due(at seconds: Int64) async throws -> [UInt64] {
            let due = try await store.dueRetries(
                at: Sample.moment(seconds), limit: 100, excluding: [], unless: { _ in false })
            return due.map { UInt64($0.delivery.delivery.ordinal.offset) }.sorted()
        }
    }

    static func settings(_ factory: any StoreFactory) async throws {
        var bench = try await Bench(factory)
        let owed = bench.held(1).delivery
        let found = try await bench.store.kindness(among: [owed])[owed.delivery.id]
        #expect(found?.subscription.isPaused == true)
        #expect(found?.subscriptionSerial == bench.subscription.serial)
        #expect(found?.deviceSerial == bench.device.serial)
        var resumed = bench.subscription.subscription
        resumed.kindness.isPaused = false
        bench.subscription = try await Bench.edited(.update(resumed), bench.store)
        #expect(try await bench.store.kindness(among: [owed]) == [:])
    }

    static func overflow(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = UInt64(Limits.maximumHeldDeliveries)
        try await bench.hold((1...most + 3).map { bench.held($0) })
        let rows = try await bench.store.retries(of: Sample.container, limit: 100)
        #expect(rows.count == Int(most))
        #expect(rows.allSatisfy { $0.reason == .held(.paused) && $0.attempts == 0 })
        #expect(try await bench.store.nextDigestDue() == Sample.moment(1000))
        #expect(try await bench.store.dueDigests(at: Sample.moment(999), limit: 9) == [])
        let digest = try #require(
            try await bench.store.dueDigests(at: Sample.moment(1000), limit: 9).first)
        #expect(digest.deliveries == 3 && digest.count == 3)
        #expect(digest.newest == bench.held(most + 3).delivery)
        // A delivery that already has its row keeps it, although the maximum is reached.
        try await bench.store.settle(
            {
                var step = SettledStep(from: .start, to: .start)
                step.retries = [bench.held(2, until: 2000)]
                return step
            }())
        #expect(try await bench.due(at: 1999) == (1...most).filter { $0 != 2 })
        let counts = try await bench.store.held(
            of: Sample.identifier("ann"), in: Sample.container, limit: 9)
        #expect(
            counts == [
                HeldCount(
                    database: .public, subscription: Sample.identifier("artworks"),
                    device: Sample.identifier("phone"), deliveries: Int(most) + 3)
            ])
        #expect(try await bench.store.heldCounts() == [.paused: Int(most) + 3])
        try await bench.expectBalance()
    }

    static func closing(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = UInt64(Limits.maximumHeldDeliveries)
        try await bench.hold((1...most + 2).map { bench.held($0) })
        let now = Sample.moment(1000)
        let read = try await bench.store.dueDigests(at: now, limit: 9).map {
            ClosingDigest($0, as: $0.newest)
        }
        try await bench.hold([bench.held(most + 3)])
        #expect(try await bench.store.close(read, at: now) == 0, "it has grown since")
        let again = try await bench.store.dueDigests(at: now, limit: 9).map {
            ClosingDigest($0, as: $0.newest)
        }
        #expect(try await bench.store.close(again, at: now) == 1)
        #expect(try await bench.store.close(again, at: now) == 0, "it is closed")
        #expect(try await bench.store.nextDigestDue() == nil)
        let closed = try await bench.store.exception(bench.held(most + 3).delivery.delivery.id)
        guard case .retry(let retry)? = closed else {
            Issue.record("\(String(describing: closed))")
            return
        }
        #expect(retry.reason == .together && retry.dueAt == now && retry.attempts == 0)
        try await bench.expectBalance()
        let account = try await bench.store.accounts().first { $0.container == Sample.container }
        #expect(account?.folded == 2 && account?.pending == Int(most) + 1)
        // A delivery that is held after the digest was closed begins another one.
        try await bench.hold([bench.held(most + 4)])
        #expect(try await bench.store.dueDigests(at: now, limit: 9).map(\.deliveries) == [1])
    }

    static func release(_ factory: any StoreFactory) async throws {
        var bench = try await Bench(factory)
        let most = UInt64(Limits.maximumHeldDeliveries)
        try await bench.hold((1...most + 1).map { bench.held($0) })
        var resumed = bench.subscription.subscription
        resumed.kindness.isPaused = false
        #expect(try await bench.due(at: 500) == [])
        bench.subscription = try await Bench.edited(.update(resumed), bench.store, at: 500)
        #expect(try await bench.due(at: 500) == Array(1...most))
        #expect(try await bench.store.nextDigestDue() == Sample.moment(500))
        try await bench.store.settle(
            {
                var step = SettledStep(from: .start, to: .start)
                step.retries = [bench.held(1, at: 501, .quietHours)]
                return step
            }())
        #expect(try await bench.due(at: 501) == Array(2...most))
        #expect(
            try await bench.store.forgetDevice(
                bench.device.device.id, of: bench.device.device.owner, in: Sample.container,
                at: Sample.moment(600)))
        #expect(try await bench.due(at: 600) == Array(1...most))
    }

    static func connected(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = UInt64(Limits.maximumHeldDeliveries)
        // Deliveries that wait for a connection wait briefly, so their number is not limited.
        try await bench.hold((1...most + 5).map { bench.held($0, .connected) })
        #expect(try await bench.store.nextDigestDue() == nil)
        #expect(try await bench.store.heldCounts() == [.connected: Int(most) + 5])
        // They also take no places from deliveries that wait longer.
        try await bench.hold([bench.held(100)])
        #expect(try await bench.store.nextDigestDue() == nil)
        func ids(_ numbers: UInt64...) -> [DeliveryID] {
            numbers.map { bench.held($0).delivery.delivery.id }
        }
        try await bench.store.release(
            ids(1, 2, 100, 999), heldFor: .connected, at: Sample.moment(20))
        #expect(try await bench.due(at: 19) == [])
        #expect(try await bench.due(at: 20) == [1, 2])
        var step = SettledStep(from: .start, to: .start)
        step.endedRetries = ids(1)
        step.tallies = [Sample.container: DeliveryTally(seen: 1)]
        try await bench.store.settle(step)
        let account = try await bench.store.accounts().first { $0.container == Sample.container }
        #expect(account?.seen == 1 && account?.pending == Int(most) + 5)
        try await bench.expectBalance()
    }

    static func outdated(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        var resumed = bench.subscription.subscription
        resumed.kindness.isPaused = false
        let after = try await Bench.edited(.update(resumed), bench.store, at: 5)
        // The delivery was judged by the version before the edit, but is recorded only now.
        try await bench.hold([bench.held(1, at: 10)])
        #expect(try await bench.due(at: 10) == [1])
        var current = bench
        current.subscription = after
        try await bench.hold([current.held(2, at: 10)])
        #expect(try await bench.due(at: 10) == [1])
    }

    static func fates(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let most = UInt64(Limits.maximumHeldDeliveries)
        try await bench.hold((1...most + 2).map { bench.held($0) })
        let delivery = bench.held(most + 1).delivery.delivery
        func fate(at seconds: Int64) async throws -> DigestFate? {
            let moment = Sample.moment(seconds)
            let fate = try await bench.store.digestFate(of: delivery, heldAt: moment)
            // Asking by the receipt gives the same answer.
            let receipt = DeliveryReceipt(
                deliveryID: delivery.id, ordinal: delivery.ordinal,
                subscriptionSerial: bench.subscription.serial,
                deviceSerial: bench.device.serial, outcome: .deferred, status: 0, reason: "",
                attempt: 0, at: moment)
            let fates = try await bench.store.digestFates(of: [receipt])
            #expect(fates == (fate.map { [delivery.id: $0] } ?? [:]))
            return fate
        }
        #expect(try await fate(at: 9) == nil)
        #expect(
            try await fate(at: 10)
                == .open(until: Sample.moment(1000), deliveries: 2, reason: .paused))
        let now = Sample.moment(1000)
        let due = try await bench.store.dueDigests(at: now, limit: 9)
        _ = try await bench.store.close(due.map { ClosingDigest($0, as: $0.newest) }, at: now)
        #expect(
            try await fate(at: 10)
                == .closed(
                    at: now, count: 2, by: bench.held(most + 2).delivery.delivery.id,
                    position: LogPosition(1)))
        // A delivery that is held at the very moment of the closing does not belong to the closed
        // digest.
        try await bench.hold([bench.held(most + 3, at: 1000, until: 2000, .digest)])
        #expect(
            try await fate(at: 1000)
                == .open(until: Sample.moment(2000), deliveries: 1, reason: .digest))
        #expect(
            try await fate(at: 10)
                == .closed(
                    at: now, count: 2, by: bench.held(most + 2).delivery.delivery.id,
                    position: LogPosition(1)))
    }

    static func throttles(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let line = ThrottledLine(bench.held(1).delivery.delivery)
        func place(_ number: UInt64, at seconds: Int64) -> ThrottlePlace {
            ThrottlePlace(
                line, Sample.deliveryID(number), takenAt: Sample.moment(seconds),
                endsAt: Sample.moment(seconds + 60))
        }
        func past(at seconds: Int64) async throws -> ThrottlePast? {
            try await bench.store.throttlePasts(of: [line], at: Sample.moment(seconds)).first
        }
        func record(_ places: ThrottlePlace...) async throws {
            var step = SettledStep(from: .start, to: .start)
            step.places = places
            try await bench.store.settle(step)
        }
        #expect(try await past(at: 5) == ThrottlePast(line, places: [], isWaitedFor: false))
        try await record(place(2, at: 20), place(1, at: 10))
        #expect(try await past(at: 30)?.places == [place(1, at: 10), place(2, at: 20)])
        #expect(try await past(at: 70)?.places == [place(2, at: 20)])
        // A delivery that was sent again counts from its latest attempt.
        try await record(place(2, at: 75))
        #expect(try await past(at: 30)?.places == [place(2, at: 75)], "what ended is forgotten")
        let other = ThrottledLine(Sample.owed(7).delivery)
        #expect(
            try await bench.store.throttlePasts(of: [other, line], at: Sample.moment(76)).map(
                \.places.count) == [0, 1])
        try await bench.hold([bench.held(5, .digest)])
        #expect(try await past(at: 76)?.isWaitedFor == true)
        let early = try await bench.store.prune(
            Retention(), at: Sample.moment(134), portion: 9)
        #expect(early.throttlePlaces == 0)
        let late = try await bench.store.prune(
            Retention(), at: Sample.moment(135), portion: 9)
        #expect(late.throttlePlaces == 1)
        #expect(try await past(at: 76)?.places == [])
        try await record(place(3, at: 200))
        #expect(try await past(at: 201)?.places == [place(3, at: 200)])
    }

    static func kept(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        let hours = try QuietHours(
            json: ["timeZone": "UTC", "from": "22:00", "until": "07:00"], path: "")
        var sparing = DeviceSparing()
        sparing.quietHours = .now(hours)
        let device = bench.device.device
        let spared = try await bench.store.register(
            device, named: .device, sparing, at: Sample.moment(2))
        #expect(spared.serial > bench.device.serial)
        #expect(spared.device.kindness.quietHours == hours)
        let again = try await bench.store.register(device, at: Sample.moment(3))
        #expect(again.serial == spared.serial && again.device == spared.device)
        var renewed = device
        renewed.token = Sample.token(9)
        let other = try await bench.store.register(renewed, at: Sample.moment(4))
        #expect(other.device.kindness.quietHours == hours)
        let reopened = try await factory.reopen(bench.store)
        #expect(
            try await reopened.devices(of: Sample.container, owner: nil, limit: 9) == [other])
        var told = DeviceSparing()
        told.isUnlessConnected = .now(true)
        let both = try await reopened.register(
            renewed, named: .device, told, at: Sample.moment(5))
        #expect(both.device.kindness.isUnlessConnected && both.device.kindness.quietHours == hours)
        sparing.isUnlessConnected = .now(false)
        sparing.quietHours = .now(nil)
        let loud = try await reopened.register(
            renewed, named: .device, sparing, at: Sample.moment(5))
        #expect(loud.device.kindness.isEmpty)
    }

    static func expiry(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        var short = Sample.subscription("short", artist: "b", of: Sample.owner("ann"))
        short.kindness.expiresAt = Sample.moment(100)
        _ = try await Bench.edited(.create(short), bench.store)
        func prune(at seconds: Int64) async throws -> Int {
            try await bench.store.prune(Retention(), at: Sample.moment(seconds)).expired
        }
        #expect(try await prune(at: 100 + 86_400) == 0)
        #expect(try await prune(at: 101 + 86_400) == 1)
        #expect(try await prune(at: 102 + 86_400) == 0)
        let left = try await bench.store.subscription(short.id, of: Sample.owner("ann"))
        #expect(left == nil)
        let entry = try await bench.store.entries(
            after: LogPosition(try await bench.store.head().rawValue - 1), limit: 1)
        guard case .subscriptionDeleted? = entry.first?.body else {
            Issue.record("\(entry)")
            return
        }
    }
}
