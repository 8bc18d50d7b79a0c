import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import Delivery

/// Deliveries that wait, and let others go meanwhile.
@Suite struct WaitingTests {
    // MARK: Rows of a halted lane

    @Test func `a halted delivery is written once, and not read until it may go`()
        async throws
    {
        let bench = try await WorkerBench { _, _ in .badCredential }
        try await bench.run {
            try await bench.accept(1...30)
            #expect(await bench.passed(30))
            let before = try await bench.retries
            let receipts = try await bench.receipts.count
            await bench.advance(by: .seconds(60), times: 10)
            #expect(await Turns.yield { bench.gateway.requests.count > 30 })
            // A trial may still be under way.
            let isRecorded = try await Turns.yield {
                try await bench.receipts.count == receipts + bench.gateway.requests.count - 30
            }
            #expect(isRecorded)
            let tried = bench.gateway.requests.count - 30
            #expect((1...10).contains(tried), "one a minute, not \(tried)")
            #expect(try await bench.retries.count == before.count)
        }
    }

    @Test func `a halt ends once nothing waits for it`() async throws {
        let bench = try await WorkerBench { _, _ in .badCredential }
        try await bench.run {
            try await bench.accept(1...3)
            #expect(await bench.passed(3))
            // As long as something waits, the halt is tried and shown.
            await bench.advance(by: .seconds(30), times: 10)
            #expect(bench.worker.halts.count == 1)
            #expect(bench.metrics["belfry_halts"] == 1)
            _ = try await bench.store.forgetDevice(
                Fixtures.identifier("phone"), of: Fixtures.identifier("alice"),
                in: Fixtures.container, at: Fixtures.moment)
            let isOver = await bench.advance(by: .seconds(10)) {
                bench.worker.halts.isEmpty && bench.metrics["belfry_halts"] == 0
            }
            #expect(isOver)
            #expect(try await bench.retries.isEmpty)
        }
        #expect(try await bench.deadLetters.count == 3)
    }

    @Test func `a halt ends even if another one still has waiting deliveries`() async throws {
        let bench = try await WorkerBench { _, _ in .badCredential }
        let end = bench.clock.moment.advanced(by: .seconds(300))
        try await bench.run {
            try await bench.accept(1...3)
            try await bench.accept(
                deliveries(4...5) { delivery in
                    delivery.container = WorkerBench.otherContainer
                    delivery.notification.expiration = end
                })
            #expect(await bench.passed(5))
            #expect(bench.worker.halts.count == 2)
            let isOver = await bench.advance(by: .seconds(10)) { bench.worker.halts.count == 1 }
            #expect(isOver)
            #expect(bench.worker.halts.map(\.container) == [Fixtures.container])
            #expect(try await bench.retries.count == 3)
        }
    }

    @Test func `a halt that was asked for, or is being tried, does not count as untried`() {
        var halts = Halts()
        let now = Fixtures.moment
        let asked = OutcomeJudge.Halt(
            scope: .gateway(.development), until: now, pause: .seconds(30), reason: "asked",
            asked: now.advanced(by: .seconds(3600)))
        let refused = OutcomeJudge.Halt(
            scope: .container(.development), until: now, pause: .seconds(60), reason: "refused")
        for halt in [asked, refused] {
            let isNew = halts.add(halt, for: Fixtures.container, at: now)
            #expect(isNew)
        }
        #expect(halts.untried(at: now).isEmpty)
        let later = now.advanced(by: .seconds(60))
        let untried = halts.untried(at: later)
        #expect(untried.map(\.scope) == [.container(.development)])
        // A trial in the meantime keeps the halt.
        halts.letThrough(Fixtures.delivery(at: 1).delivery, at: later)
        for key in untried {
            let hasEnded = halts.remove(untried: key, at: later)
            #expect(!hasEnded)
        }
        #expect(halts.count == 2)
        let end = now.advanced(by: .seconds(7200))
        #expect(halts.untried(at: end).count == 2)
        for key in halts.untried(at: end) {
            let hasEnded = halts.remove(untried: key, at: end)
            #expect(hasEnded)
        }
        #expect(halts.count == 0)
    }

    // MARK: The circuit breaker

    @Test func `a failing gateway is left alone, and tried one push at a time`()
        async throws
    {
        let bench = try await WorkerBench(window: 256) { _, _ in .unavailable }
        try await bench.run {
            try await bench.accept(1...30)
            #expect(await bench.passed(30))
            bench.clock.advance(by: .seconds(2))
            #expect(await Turns.yield { bench.worker.halts.count == 1 })
            #expect(
                bench.worker.halts.map(\.reason)
                    == ["the gateway cannot be used: ServiceUnavailable"])
            let sent = bench.gateway.requests.count
            // A new delivery waits without an attempt.
            try await bench.accept(31...60)
            #expect(await bench.passed(60))
            #expect(bench.gateway.requests.count == sent)
            #expect(try await bench.retries.count { $0.attempts == 0 } == 30)
            // There are only few trials in half an hour, because the pauses grow to half a minute.
            await bench.advance(by: .seconds(10), times: 180)
            #expect(bench.gateway.requests.count - sent <= 90)
            bench.gateway.follow { _, _ in .accepted }
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
            #expect(bench.worker.halts.isEmpty)
        }
        #expect(Set(bench.gateway.requests.map(\.deliveryID)).count == 60)
    }

    @Test func `a lost connection with all its open pushes halts nothing`()
        async throws
    {
        let bench = try await WorkerBench(window: 256) { _, attempt in
            attempt == 1 ? .unknown(cause: "it is broken") : .accepted
        }
        try await bench.run {
            try await bench.accept(1...100)
            #expect(await bench.passed(100))
            #expect(bench.worker.halts.isEmpty)
        }
    }

    @Test func `the broken gateway of one container does not affect others`() async throws {
        let bench = try await WorkerBench(window: 64) { request, _ in
            request.container == Fixtures.container ? nil : .accepted
        }
        try await bench.run {
            let following = Task {
                try await bench.accept(1...200)
                try await bench.accept(
                    deliveries(201...210) { $0.container = WorkerBench.otherContainer })
            }
            let passed = await bench.advance(by: .milliseconds(500)) {
                bench.worker.recordedMark.position == LogPosition(210)
            }
            #expect(passed)
            if !passed { following.cancel() }
            _ = try? await following.value
            #expect(bench.worker.halts.map(\.reason) == ["the gateway cannot be used: no answer"])
        }
        let others = bench.gateway.requests.filter { $0.container == WorkerBench.otherContainer }
        #expect(others.count == 10)
        // The count includes both windows and the trials of the halt, one after each pause.
        #expect(bench.gateway.requests.count - others.count < 150)
    }

    // MARK: Turns

    @Test func `many retries of one container do not block those of another`() async throws {
        let bench = try await WorkerBench(retryWindow: 8) { _, attempt in
            attempt == 1 ? .unavailable : .accepted
        }
        try await bench.run {
            try await bench.accept(1...200)
            try await bench.accept(
                deliveries(201...201) { $0.container = WorkerBench.otherContainer })
            #expect(await bench.passed(201))
            let first = bench.gateway.requests.count
            bench.clock.advance(by: .seconds(10))
            #expect(
                await Turns.yield {
                    bench.gateway.requests.dropFirst(first)
                        .contains { $0.container == WorkerBench.otherContainer }
                })
            let turn = bench.gateway.requests.dropFirst(first)
                .firstIndex { $0.container == WorkerBench.otherContainer }
            #expect((turn ?? .max) - first < 16)
        }
    }

    // MARK: Devices

    @Test func `a device with too many pushes is left alone, and others are not`()
        async throws
    {
        let tooMany = PushOutcome.refused(
            GatewayRefusal(
                status: 429, reason: "TooManyRequests",
                reaction: .retry(after: .seconds(30), scope: .device)))
        let tablet = Fixtures.token(2)
        let bench = try await WorkerBench { request, attempt in
            request.token == tablet && attempt == 1 && request.deliveryID.uuid.high == 1
                ? tooMany : .accepted
        }
        try await bench.run {
            try await bench.accept(deliveries(1...1) { $0.token = tablet })
            #expect(await bench.passed(1))
            try await bench.accept(deliveries(2...4) { $0.token = tablet })
            try await bench.accept(5...9)
            #expect(await bench.passed(9))
            #expect(bench.gateway.requests.filter { $0.token == tablet }.count == 1)
            #expect(bench.gateway.requests.count == 6)
            let reasons = try await bench.retries.map(\.reason.stored)
            #expect(
                reasons.sorted()
                    == ["TooManyRequests"]
                    + Array(repeating: "too many pushes for this device", count: 3))
            bench.clock.advance(by: .seconds(29))
            #expect(await Turns.keeps { bench.gateway.requests.count == 6 })
            let done = try await bench.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(bench.gateway.requests.count == 10)
    }

    @Test func `background pushes of one device are spread over the hour, visible ones are not`()
        async throws
    {
        let bench = try await WorkerBench(silentPerHour: 3)
        try await bench.run {
            let silent = deliveries(1...6) {
                $0.notification.pushType = .background
                $0.notification.priority = 5
            }
            try await bench.accept(silent)
            try await bench.accept(7...12)
            #expect(await bench.passed(12))
            #expect(bench.gateway.requests.count == 9)
            let due = try await bench.retries.map { $0.dueAt.duration(since: Fixtures.moment) }
            #expect(due == [.seconds(1200), .seconds(2400), .seconds(3600)])
            for (minutes, count) in [(19, 9), (20, 10), (40, 11), (60, 12)] {
                let moment = Fixtures.moment.advanced(by: .seconds(60 * minutes))
                bench.clock.advance(by: moment.duration(since: bench.clock.moment))
                #expect(await Turns.yield { bench.gateway.requests.count == count })
                #expect(await Turns.keeps { bench.gateway.requests.count == count })
            }
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        let waited = try await bench.receipts.filter { $0.outcome == .accepted && $0.attempt > 1 }
        #expect(waited == [], "waiting uses up no attempt")
    }

    @Test func `background pushes to a courier are not spread`() async throws {
        let bench = try await WorkerBench(silentPerHour: 3)
        try await bench.run {
            try await bench.accept(
                deliveries(1...6) {
                    $0.notification.pushType = .background
                    $0.gateway = .courier
                })
            #expect(await bench.passed(6))
            #expect(bench.gateway.requests.count == 6)
        }
    }

    // MARK: Collapse

    private func collapsing(_ positions: ClosedRange<UInt64>, _ record: String) -> [OwedDelivery] {
        deliveries(positions) {
            $0.notification.collapseID = "art"
            $0.collapsingRecord = RecordID(recordName: Fixtures.identifier(record))
        }
    }

    @Test(arguments: [false, true])
    func `a newer change of a record supersedes a waiting delivery`(
        hasRestarted: Bool
    )
        async throws
    {
        let temporary = try TemporaryStore()
        var bench = try await WorkerBench(on: temporary) { _, _ in .unavailable }
        try await bench.run {
            try await bench.accept(collapsing(1...3, "a1") + collapsing(4...4, "a2"))
            try await bench.accept(5...5)
            #expect(await bench.passed(5))
        }
        if hasRestarted {
            await bench.store.close()
            bench = try await WorkerBench(
                at: ProgressMark(position: LogPosition(5), offset: 0), on: temporary)
        }
        bench.gateway.follow { _, _ in .accepted }
        let before = bench.gateway.requests.count
        try await bench.run {
            let done = try await bench.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        let sent = bench.gateway.requests.dropFirst(before).map(\.deliveryID.uuid.high)
        #expect(sent.sorted() == [3, 4, 5])
        let letters = try await bench.deadLetters
        #expect(letters.map(\.delivery.delivery.ordinal.position.rawValue).sorted() == [1, 2])
        #expect(
            Set(letters.map(\.reason)) == ["superseded by a newer change of the record"])
        await bench.store.close()
    }
}

extension WorkerBench {
    var receipts: [DeliveryReceipt] {
        get async throws {
            try await store.receipts(matching: ReceiptFilter(), limit: 10_000)
        }
    }
}
