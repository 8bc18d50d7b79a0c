import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A waiting delivery is checked again when it is sent, because its device may have another owner
/// by then.
@Suite struct WithdrawalTests {
    /// The event while a delivery waits.
    enum Meanwhile: String, CaseIterable {
        case signOut, takeover, otherEnvironment, deletion

        var withdrawal: Withdrawal {
            switch self {
            case .takeover: .token
            case .signOut, .otherEnvironment: .device
            case .deletion: .subscription
            }
        }

        func happen(to store: RelayStore) async throws {
            switch self {
            case .signOut:
                _ = try await store.forgetDevice(
                    Fixtures.identifier("phone"), of: Fixtures.identifier("alice"),
                    in: Fixtures.container, at: Fixtures.moment)
            case .takeover:
                _ = try await store.register(
                    Fixtures.device("hers", of: "bob"), at: Fixtures.moment)
            case .otherEnvironment:
                var device = Fixtures.device("phone")
                device.gatewayEnvironment = .production
                _ = try await store.register(device, at: Fixtures.moment)
            case .deletion: break
            }
        }
    }

    private static let offline = PushOutcome.notSent(cause: "no connection")

    private static func lists(
        _ deliveries: [OwedDelivery], for meanwhile: Meanwhile
    )
        -> [OwedDelivery]
    {
        deliveries.map { owed in
            var owed = owed
            // The bench saves no subscription, so the subscription counts as deleted.
            owed.delivery.isOnce = meanwhile == .deletion ? false : nil
            return owed
        }
    }

    @Test(arguments: Meanwhile.allCases)
    func `a retry whose device has another owner ends, also after a restart`(
        meanwhile: Meanwhile
    ) async throws {
        let home = try TemporaryStore()
        let bench = try await WorkerBench(on: home) { _, _ in Self.offline }
        try await bench.run {
            try await bench.accept(Self.lists(deliveries(1...3), for: meanwhile))
            #expect(await bench.passed(3))
            #expect(try await bench.retries.count == 3)
        }
        let sent = bench.gateway.requests.count
        try await meanwhile.happen(to: bench.store)
        let letters = try await Self.work(bench)
        #expect(bench.gateway.requests.count == sent)
        #expect(letters == Array(repeating: meanwhile.withdrawal.rawValue, count: 3))
        #expect(bench.metrics[#"belfry_deliveries_settled_total{outcome="withdrawn"}"#] == 3)
        // A redriven delivery is checked like any other.
        let redriven = try await bench.store.redriveDeadLetters(
            nil, of: Fixtures.container, reason: nil, at: bench.clock.moment)
        #expect(redriven.redriven == 3)
        await bench.store.close()
        let mark = ProgressMark(position: LogPosition(3), offset: 0)
        let next = try await WorkerBench(at: mark, on: home)
        #expect(try await Self.work(next) == letters)
        #expect(next.gateway.requests.isEmpty)
        #expect(try await next.deadLetters.allSatisfy { $0.status == 0 })
        #expect(try await next.store.accounts().allSatisfy { $0.difference == 0 })
    }

    /// Works retries until none is left; returns the reasons of the dead letters.
    private static func work(_ bench: WorkerBench) async throws -> [String] {
        try await bench.run {
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        return try await bench.deadLetters.map(\.reason)
    }

    @Test func `an unsent delivery is not sent after a sign-out`()
        async throws
    {
        let bench = try await WorkerBench(window: 2) { _, _ in nil }
        try await bench.run {
            let handing = Task { try await bench.accept(1...4) }
            #expect(await Turns.yield { bench.gateway.requests.count == 2 })
            // Two deliveries are with the gateway, and two wait for room.
            try await Meanwhile.signOut.happen(to: bench.store)
            for request in bench.gateway.requests {
                bench.gateway.answer(request.ticket, .accepted)
            }
            try await handing.value
            #expect(await bench.passed(4))
        }
        #expect(bench.gateway.requests.count == 2)
        #expect(
            try await bench.deadLetters.map(\.reason)
                == Array(repeating: Withdrawal.device.rawValue, count: 2))
    }

    @Test func `handing over waits for a store that is away`() async throws {
        let bench = try await WorkerBench()
        try await Meanwhile.signOut.happen(to: bench.store)
        bench.progress.refuseReading(.unavailable("the database cannot be reached"))
        try await bench.run {
            let handing = Task { try await bench.accept(1...2) }
            #expect(await Turns.yield { bench.progress.refusalCount > 1 })
            bench.progress.refuseReading(nil)
            let isPassed = await bench.advance(by: .seconds(1)) {
                bench.worker.recordedMark.position == LogPosition(2)
            }
            #expect(isPassed)
            try await handing.value
        }
        #expect(bench.gateway.requests.isEmpty)
    }

    @Test func `the worker waits at its start for a store that is away`() async throws {
        let bench = try await WorkerBench()
        bench.progress.refuseReading(.unavailable("the database cannot be reached"))
        try await bench.run {
            #expect(await Turns.yield { bench.progress.refusalCount > 0 })
            bench.progress.refuseReading(nil)
            try await bench.accept(1...2)
            let isPassed = await bench.advance(by: .seconds(1)) {
                bench.worker.recordedMark.position == LogPosition(2)
            }
            #expect(isPassed)
        }
        #expect(bench.gateway.requests.count == 2)
    }

    @Test func `an attempt that the gateway holds is checked again when its registration ends`()
        async throws
    {
        let bench = try await WorkerBench { _, _ in nil }
        try await bench.run {
            try await bench.accept(1...30)
            #expect(await Turns.yield { bench.gateway.requests.count == 30 })
            try await Meanwhile.signOut.happen(to: bench.store)
            for request in bench.gateway.requests {
                let registration = try #require(request.registration)
                #expect(bench.store.hasEnded(registration.serial, since: registration.ends))
                let now = bench.store.endedDevicesCount
                #expect(!bench.store.hasEnded(registration.serial, since: now))
                bench.gateway.answer(request.ticket, .notSent(cause: .registrationEnded))
            }
            #expect(await bench.passed(30))
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        // The gateway has not answered, and this must not count as a failure of the gateway.
        #expect(bench.gateway.requests.count == 30)
        #expect(bench.worker.answers.isEmpty)
        #expect(bench.worker.halts.isEmpty)
        #expect(
            try await bench.deadLetters.map(\.reason)
                == Array(repeating: Withdrawal.device.rawValue, count: 30))
    }

    @Test func `a held attempt goes by the registration that its token has now`() async throws {
        let bench = try await WorkerBench { _, attempt in attempt == 1 ? Self.offline : nil }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            // The delivery survives that its user registers the token under another ID.
            _ = try await bench.store.register(Fixtures.device("new"), at: Fixtures.moment)
            let isHeld = await bench.advance(by: .seconds(1)) {
                bench.gateway.requests.count == 2
            }
            #expect(isHeld)
            let request = try #require(bench.gateway.requests.last)
            let registration = try #require(request.registration)
            #expect(!bench.store.hasEnded(registration.serial, since: registration.ends))
            try await Meanwhile.takeover.happen(to: bench.store)
            #expect(bench.store.hasEnded(registration.serial, since: registration.ends))
            bench.gateway.answer(request.ticket, .notSent(cause: .registrationEnded))
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(bench.gateway.requests.count == 2)
        #expect(try await bench.deadLetters.map(\.reason) == [Withdrawal.token.rawValue])
    }

    @Test func `a token may move to a user whose name has another spelling`() async throws {
        let store = try await WorkerBench { _, _ in nil }.store
        let owed = deliveries(1...1) { $0.owner = Fixtures.identifier("zo\u{e9}") }
        _ = try await store.register(
            Fixtures.device("phone", of: "zo\u{e9}"), at: Fixtures.moment)
        #expect(try await store.withdrawals(among: owed).isEmpty)
        _ = try await store.register(
            Fixtures.device("hers", of: "zoe\u{301}"), at: Fixtures.moment)
        #expect(try await store.withdrawals(among: owed)[owed[0].delivery.id] == .token)
    }

    @Test func `waiting deliveries survive a new registration of the token by its user`()
        async throws
    {
        let bench = try await WorkerBench { _, attempt in
            attempt == 1 ? Self.offline : .accepted
        }
        try await bench.run {
            try await bench.accept(1...2)
            #expect(await bench.passed(2))
            _ = try await bench.store.register(Fixtures.device("new"), at: Fixtures.moment)
            try await bench.accept(3...3)
            let done = try await bench.advance(by: .seconds(5)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(try await bench.deadLetters.isEmpty)
    }

    @Test func `deliveries ended by a dead token are redriven once the user registers it again`()
        async throws
    {
        let bench = try await WorkerBench { _, _ in
            .refused(
                GatewayRefusal(
                    status: 410, reason: "Unregistered",
                    reaction: .forgetDeviceToken(.dead(since: nil))))
        }
        func redrive() async throws {
            let redriven = try await bench.store.redriveDeadLetters(
                nil, of: Fixtures.container, reason: nil, at: bench.clock.moment)
            #expect(redriven.redriven == 1)
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            bench.gateway.follow { _, _ in .accepted }
            try await redrive()
            #expect(try await bench.deadLetters.map(\.reason) == ["the device token is dead"])
            bench.clock.advance(by: .seconds(60))
            _ = try await bench.store.register(
                Fixtures.device("phone"), at: bench.clock.moment)
            try await redrive()
        }
        #expect(try await bench.deadLetters.isEmpty)
        #expect(bench.gateway.requests.count == 2)
    }
}
