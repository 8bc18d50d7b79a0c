import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@Suite struct DeliveryWorkerTests {
    @Test func `an accepted push is settled and leaves a receipt`() async throws {
        let bench = try await WorkerBench()
        try await bench.run {
            try await bench.accept(1...20)
            #expect(await bench.passed(20))
        }
        let receipts = try await bench.store.receipts(matching: ReceiptFilter(), limit: 100)
        #expect(receipts.count == 20)
        #expect(receipts.allSatisfy { $0.outcome == .accepted && $0.attempt == 1 })
        #expect(try await bench.retries == [])
        #expect(bench.worker.inFlight == 0)
    }

    @Test func `the progress is shown before anything is settled`() async throws {
        let mark = ProgressMark(position: LogPosition(7), offset: 0)
        let bench = try await WorkerBench(at: mark)
        #expect(bench.metrics["belfry_progress_position"] == 7)
    }

    // MARK: Backpressure

    @Test func `the follower waits while the window is full`() async throws {
        let bench = try await WorkerBench(window: 4) { _, _ in nil }
        try await bench.run {
            let following = Task { try await bench.accept(1...10) }
            #expect(await Turns.yield { bench.gateway.unanswered.count == 4 })
            #expect(await Turns.keeps { bench.gateway.requests.count == 4 })
            // There is room only once the settled front is durable.
            bench.gateway.follow { _, _ in .accepted }
            for ticket in bench.gateway.unanswered.reversed() {
                bench.gateway.answer(ticket, .accepted)
            }
            try await following.value
            #expect(await bench.passed(10))
        }
        #expect(bench.gateway.requests.count == 10)
    }

    @Test func `a waiting follower can be cancelled`() async throws {
        let bench = try await WorkerBench(window: 2) { _, _ in nil }
        let following = Task { try await bench.accept(1...5) }
        #expect(await Turns.yield { bench.gateway.unanswered.count == 2 })
        following.cancel()
        await #expect(throws: CancellationError.self) { try await following.value }
    }

    // MARK: Retries

    @Test func `a retry is sent when it falls due, with the same identity`() async throws {
        let bench = try await WorkerBench { _, attempt in
            attempt < 3 ? .unavailable : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            let first = try #require(try await bench.retries.first)
            #expect(bench.clock.moment <= first.dueAt)
            let done = try await bench.advance(by: .milliseconds(500)) {
                try await bench.retries.isEmpty && bench.gateway.requests.count == 3
            }
            #expect(done)
            #expect(first.dueAt <= bench.clock.moment)
        }
        #expect(Set(bench.gateway.requests.map(\.deliveryID)).count == 1)
        let receipts = try await bench.store.receipts(matching: ReceiptFilter(), limit: 100)
        #expect(receipts.map(\.attempt).sorted() == [1, 2, 3])
        #expect(receipts.filter { $0.outcome == .accepted }.map(\.attempt) == [3])
    }

    @Test func `more retries than fit the retry window follow one another at once`() async throws {
        let bench = try await WorkerBench(retryWindow: 4) { _, attempt in
            attempt == 1 ? .unavailable : .accepted
        }
        try await bench.run {
            try await bench.accept(1...40)
            #expect(await bench.passed(40))
            // All retries are due now, and the clock stands still from here on.
            bench.clock.advance(by: .seconds(10))
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(bench.gateway.requests.count == 80)
    }

    @Test func `a delivery that expired before it could be sent ends without being sent`()
        async throws
    {
        let bench = try await WorkerBench()
        let expiration = Fixtures.moment.advanced(by: .seconds(60))
        bench.clock.advance(by: .seconds(60))
        try await bench.run {
            try await bench.accept(1...1, expiration: expiration)
            #expect(await bench.passed(1))
        }
        #expect(bench.gateway.requests == [])
        #expect(try await bench.deadLetters.map(\.reason) == ["expired"])
    }

    @Test func `a notification that expires at once is sent once`() async throws {
        let bench = try await WorkerBench { _, _ in .unavailable }
        try await bench.run {
            try await bench.accept(1...1, expiration: Fixtures.moment)
            #expect(await bench.passed(1))
        }
        #expect(bench.gateway.requests.count == 1)
        #expect(try await bench.deadLetters.map(\.reason) == ["expired: ServiceUnavailable"])
    }

    // MARK: Dead tokens

    @Test func `a token that was declared dead is not used again`() async throws {
        let bench = try await WorkerBench { _, _ in
            .refused(
                GatewayRefusal(
                    status: 410, reason: "Unregistered",
                    reaction: .forgetDeviceToken(.dead(since: nil))))
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            try await bench.accept(2...5)
            #expect(await bench.passed(5))
        }
        #expect(bench.gateway.requests.count == 1)
        let reasons = try await bench.deadLetters.map(\.reason).sorted()
        #expect(
            reasons == ["Unregistered"] + Array(repeating: "the device token is dead", count: 4))
    }

    // MARK: Slow answers

    @Test func `a slow answer blocks nothing, and is settled when it comes`() async throws {
        let bench = try await WorkerBench(window: 8) { request, _ in
            request.ticket == 0 ? nil : .accepted
        }
        try await bench.run {
            try await bench.accept(1...3)
            let adopted = await bench.advance(by: .milliseconds(500)) {
                bench.worker.recordedMark.position == LogPosition(3)
            }
            #expect(adopted)
            #expect(try await bench.retries.map(\.reason) == [.noAnswerYet])
            #expect(bench.worker.inFlight == 1)
            let ticket = try #require(bench.gateway.unanswered.first)
            bench.gateway.answer(ticket, .accepted)
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(bench.gateway.requests.count == 3)
    }

    @Test func `a gateway that never answers gets at most two windows`() async throws {
        let bench = try await WorkerBench(window: 4) { _, _ in nil }
        try await bench.run {
            let following = Task { try await bench.accept(1...20) }
            let adopted = try await bench.advance(by: .milliseconds(500)) {
                try await bench.retries.count == 8
            }
            #expect(adopted)
            await bench.advance(by: .milliseconds(500), times: 20)
            #expect(bench.gateway.requests.count == 8)
            bench.gateway.follow { _, _ in .accepted }
            for ticket in bench.gateway.unanswered { bench.gateway.answer(ticket, .accepted) }
            try await following.value
            #expect(await bench.passed(20))
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(bench.gateway.requests.count == 20)
    }

    // MARK: Halts

    @Test func `refused credentials halt the container until one push is accepted`() async throws {
        let bench = try await WorkerBench { _, _ in .badCredential }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            try await bench.accept(2...5)
            #expect(await bench.passed(5))
            #expect(bench.gateway.requests.count == 1)
            #expect(bench.worker.halts.map(\.reason) == ["InvalidProviderToken"])
            // Halted deliveries have used up no attempt.
            #expect(try await bench.retries.map(\.attempts) == [0, 0, 0, 0, 0])

            // After the pause one delivery is let through to try, and the others still wait.
            bench.clock.advance(by: .seconds(60))
            let tried = await bench.advance(by: .milliseconds(100)) {
                bench.gateway.requests.count == 2
            }
            #expect(tried)
            #expect(await Turns.keeps { bench.gateway.requests.count == 2 })

            bench.gateway.follow { _, _ in .accepted }
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
            #expect(bench.worker.halts.isEmpty)
        }
    }

    @Test func `a container resumes at once when its settings are corrected`() async throws {
        let bench = try await WorkerBench { _, attempt in
            attempt == 1 ? .badCredential : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            bench.gateway.follow { _, _ in .accepted }
            bench.worker.resume(Fixtures.container)
            #expect(bench.worker.halts.isEmpty)
            try await bench.accept(2...3)
            #expect(await bench.passed(3))
            // The waiting deliveries go too, although the clock stands still.
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(bench.gateway.requests.count == 4)
    }

    // MARK: Shutdown, and faults of the store

    @Test func `an open delivery becomes a retry at shutdown, and is sent after the start`()
        async throws
    {
        let temporary = try TemporaryStore()
        let bench = try await WorkerBench(on: temporary) { _, _ in nil }
        try await bench.run { try await bench.accept(1...3) }
        try await bench.worker.shutDown(within: .seconds(1))
        #expect(bench.worker.recordedMark.position == LogPosition(3))
        #expect(
            try await bench.retries.map(\.reason.text) == ["shut down", "shut down", "shut down"])
        await bench.store.close()

        let mark = ProgressMark(position: LogPosition(3), offset: 0)
        let next = try await WorkerBench(at: mark, on: temporary)
        try await next.run {
            let done = try await next.clock.advance(by: .seconds(1)) {
                try await next.retries.isEmpty
            }
            #expect(done)
        }
        #expect(
            Set(next.gateway.requests.map(\.deliveryID))
                == Set(bench.gateway.requests.map(\.deliveryID)))
        await next.store.close()
    }

    @Test func `nothing is lost while the disk is full, and the step is recorded later`()
        async throws
    {
        let bench = try await WorkerBench()
        bench.progress.refuse(.noRoom("full"))
        try await bench.run {
            try await bench.accept(1...3)
            // The clock must not move while an answer is on its way.
            #expect(await Turns.yield { bench.gateway.answerCount == 3 })
            let refused = await bench.advance(by: .milliseconds(100)) {
                bench.progress.refusalCount >= 3
            }
            #expect(refused)
            bench.progress.refuse(nil)
            let passed = await bench.advance(by: .milliseconds(100)) {
                bench.worker.recordedMark.position == LogPosition(3)
            }
            #expect(passed)
        }
        let receipts = try await bench.store.receipts(matching: ReceiptFilter(), limit: 100)
        #expect(receipts.count == 3)
    }

    @Test func `shutdown records a step that waits for the disk`()
        async throws
    {
        let bench = try await WorkerBench()
        bench.progress.refuse(.noRoom("full"))
        try await bench.run {
            try await bench.accept(1...3)
            #expect(await Turns.yield { bench.progress.refusalCount > 0 })
        }
        bench.progress.refuse(nil)
        try await bench.worker.shutDown(within: .seconds(1))
        let mark = try await bench.store.mark()
        #expect(mark == ProgressMark(position: LogPosition(3), offset: 0))
    }

    @Test func `a disk that stays full does not block the shutdown forever`() async throws {
        let bench = try await WorkerBench()
        bench.progress.refuse(.noRoom("full"))
        try await bench.run { try await bench.accept(1...3) }
        let time = Task {
            _ = await bench.advance(by: .milliseconds(100)) { Task.isCancelled }
        }
        await #expect(throws: StorageError.noRoom("full")) {
            try await bench.worker.shutDown(within: .seconds(1))
        }
        time.cancel()
    }

    @Test func `the worker stops when another process moved the progress`() async throws {
        let bench = try await WorkerBench()
        let elsewhere = ProgressMark(position: LogPosition(9), offset: 0)
        try await bench.store.settle(SettledStep(from: .start, to: elsewhere))
        try await bench.accept(1...1)
        await #expect(throws: StorageError.progressMoved(elsewhere)) {
            try await bench.worker.run()
        }
    }
}
