import Gateway
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// The decisions of the delivery state, without a gateway, a store or a clock.
@Suite struct DeliveryStateTests {
    private let now = Fixtures.moment

    private func state(
        window: Int = 8, silentPerHour: Int = 0, retryWindow: Int = 8
    ) -> DeliveryState {
        var settings = DeliverySettings()
        settings.window = window
        settings.rangeWindow = 4
        settings.retryWindow = retryWindow
        settings.silentPushesPerHour = silentPerHour
        return DeliveryState(
            mark: .start, settings: settings, judge: OutcomeJudge(),
            generator: SeededGenerator(seed: 1), tellsEnds: true)
    }

    private static func refusal(
        _ status: Int, _ reason: String, _ reaction: GatewayReaction
    ) -> PushOutcome {
        .refused(GatewayRefusal(status: status, reason: reason, reaction: reaction))
    }

    private static let badCredential = refusal(403, "InvalidProviderToken", .pauseContainer)

    private func answer(
        _ requests: [PushRequest], _ outcome: PushOutcome
    ) -> [PushCompletion] {
        requests.map {
            PushCompletion(ticket: $0.ticket, outcome: outcome, latency: .milliseconds(1))
        }
    }

    private func admit(
        _ deliveries: [OwedDelivery], to state: inout DeliveryState, at now: Timestamp? = nil,
        withdrawn: [DeliveryID: Withdrawal] = [:]
    ) -> Admission {
        state.admit(
            deliveries[...], atMost: deliveries.count, withdrawn: withdrawn, at: now ?? self.now)
    }

    // MARK: Admission

    @Test func `a full window admits nothing until a step is durable`() throws {
        var state = state(window: 2)
        let owed = deliveries(1...5)
        let first = admit(owed, to: &state)
        #expect(first.taken == 2)
        #expect(first.requests.map(\.deliveryID) == owed.prefix(2).map(\.delivery.id))
        #expect(state.room == 0)
        let none = admit(Array(owed.dropFirst(2)), to: &state)
        #expect(none.taken == 0)
        #expect(none.actions.isEmpty && none.requests.isEmpty)
        _ = state.take(answer(first.requests, .accepted), at: now)
        #expect(state.room == 0)
        let taken = state.nextStep()
        let step = try #require(taken)
        #expect(step.receipts.count == 2)
        #expect(state.room == 0, "it is not durable yet")
        let actions = state.stepRecorded(step)
        #expect(actions.names == ["showProgress", "wake log", "wake ranges"])
        #expect(state.room == 2)
    }

    @Test func `no more deliveries are admitted than were looked up`() {
        var state = state()
        let owed = deliveries(1...5)
        let admission = state.admit(owed[...], atMost: 3, withdrawn: [:], at: now)
        #expect(admission.taken == 3)
    }

    @Test func `a withdrawn or expired delivery is settled without being sent`() {
        var state = state()
        var owed = deliveries(1...2)
        owed.append(Fixtures.delivery(at: 3, expiration: now))
        let late = now.advanced(by: OutcomeJudge.atOnceBound)
        let admission = admit(
            owed, to: &state, at: late, withdrawn: [owed[0].delivery.id: .device])
        #expect(admission.taken == 3)
        #expect(admission.requests.map(\.deliveryID) == [owed[1].delivery.id])
        #expect(admission.actions.names == ["count", "wake steps", "began 1"])
        let letters = state.nextStep()?.deadLetters.map(\.reason)
        #expect(letters == [Withdrawal.device.rawValue])
    }

    @Test func `inbox entries are refused while too many wait`() {
        var state = state()
        let portion = Array(repeating: entry, count: 512)
        var taken = 0
        while let actions = state.add(portion) {
            #expect(actions.names == ["wake steps"])
            taken += 1
        }
        #expect(taken == Limits.maximumInboxEntriesWaiting / 512)
        let nothing = state.add([])
        #expect(nothing?.names == [])
    }

    private var entry: InboxEntry {
        InboxEntry(
            owner: InboxOwner(container: Fixtures.container, user: Fixtures.identifier("alice")),
            position: LogPosition(1), subscriptionSerial: 1,
            subscriptionID: Fixtures.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 1, low: 1), originDevice: nil,
            payload: Array("{}".utf8), at: now)
    }

    // MARK: Tickets

    @Test func `each attempt has its own ticket, and a second answer is ignored`() {
        var state = state()
        let log = admit(deliveries(1...2), to: &state)
        let batch = RangeBatch(
            id: 7, offset: 0, deliveries: deliveries(3...4), isLast: false)
        let range = state.admit(
            batch.deliveries[...], of: batch, atMost: 2, withdrawn: [:], at: now)
        let retry = Retry(
            delivery: Fixtures.delivery(at: 5), attempts: 1, dueAt: now, reason: .said("503"))
        let again = state.admit(due: [retry], withdrawn: [:], at: now)
        let requests = log.requests + range.requests + again.requests
        #expect(Set(requests.map(\.ticket)).count == 5)
        let once = state.take(answer(requests, .accepted), at: now)
        #expect(once.names == ["ended 2", "wake ranges", "count", "wake steps"])
        let twice = state.take(answer(requests, Self.badCredential), at: now)
        #expect(twice.names == ["wake steps"])
        #expect(state.rules.halts.count == 0)
    }

    // MARK: Slow answers

    @Test func `a delivery without an answer becomes a row after two seconds, until its answer`()
        throws
    {
        var state = state()
        let requests = admit(deliveries(1...2), to: &state).requests
        let early = state.adopt(at: now.advanced(by: .seconds(2)))
        #expect(early.isEmpty)
        let later = now.advanced(by: .milliseconds(2001))
        let actions = state.adopt(at: later)
        #expect(actions.names == ["ended 2", "count", "wake steps"])
        let taken = state.nextStep()
        let step = try #require(taken)
        #expect(step.retries.map(\.reason) == [.noAnswerYet, .noAnswerYet])
        #expect(step.retries.allSatisfy { $0.dueAt == later })
        #expect(step.to.offset == 1)
        _ = state.stepRecorded(step)
        #expect(state.retryLook(at: later).excluded.count == 2, "nobody takes them up")
        let ends = state.take(answer(requests, .accepted), at: later)
        #expect(ends.names == ["count", "wake steps"], "their ends were told before")
        let ended = state.nextStep()?.endedRetries.count
        #expect(ended == 2)
    }

    @Test func `a delivery that becomes a row while due rows are read is not sent twice`()
        throws
    {
        var state = state()
        let requests = admit(deliveries(1...2), to: &state).requests
        let look = state.retryLook(at: now)
        let later = now.advanced(by: .milliseconds(2001))
        _ = state.adopt(at: later)
        let taken = state.nextStep()
        let step = try #require(taken)
        _ = state.stepRecorded(step)
        // The rows are written now, and are due at once.
        let early = state.admit(due: step.retries, readAfter: look, withdrawn: [:], at: later)
        #expect(early.taken == 0 && early.requests.isEmpty)
        // It is not sent either after its answer has come and its row is gone.
        _ = state.take(answer(requests, .accepted), at: later)
        let ended = state.nextStep()
        _ = state.stepRecorded(try #require(ended))
        let late = state.admit(due: step.retries, readAfter: look, withdrawn: [:], at: later)
        #expect(late.taken == 0 && late.requests.isEmpty)
        // A delivery that another process left without an answer is sent.
        let next = state.retryLook(at: later)
        let other = state.admit(due: step.retries, readAfter: next, withdrawn: [:], at: later)
        #expect(other.taken == 2)
    }

    // MARK: Halts

    @Test func `a refused credential halts its container, and one delivery may try`() {
        var state = state()
        let first = admit(deliveries(1...1), to: &state)
        let told = state.take(answer(first.requests, Self.badCredential), at: now)
        #expect(
            told.names == [
                "ended 1", "count", "wake steps", "tellHalt InvalidProviderToken", "showHalts 1",
            ])
        let halted = admit(deliveries(2...3), to: &state)
        #expect(halted.taken == 2 && halted.requests.isEmpty)
        let waiting = state.nextStep()?.retries ?? []
        #expect(waiting.map(\.reason) == .init(repeating: .said("InvalidProviderToken"), count: 3))
        #expect(waiting.map(\.attempts) == [0, 0, 0])
        let look = state.retryLook(at: now)
        #expect(waiting.allSatisfy { look.held.contains(RetryLane(of: $0.delivery.delivery)) })
        // The rows stay unchanged until one of them may try.
        let early = state.admit(due: waiting, withdrawn: [:], at: now)
        #expect(early.taken == 0)
        let minute = now.advanced(by: .seconds(60))
        #expect(look.nextTrial == minute)
        let trial = state.admit(due: waiting, withdrawn: [:], at: minute)
        #expect(trial.taken == 1 && trial.requests.count == 1)
        let over = state.take(answer(trial.requests, .accepted), at: minute)
        #expect(over.names.suffix(3) == ["showHalts 0", "tellEndOfHalt", "wake retries"])
    }

    @Test func `a resumed container sends at once`() {
        var state = state()
        let first = admit(deliveries(1...1), to: &state)
        _ = state.take(answer(first.requests, Self.badCredential), at: now)
        let (ended, actions) = state.resume(Fixtures.container)
        #expect(ended == 1)
        #expect(actions.names == ["showHalts 0", "wake retries"])
        let next = admit(deliveries(2...3), to: &state)
        #expect(next.requests.count == 2)
    }

    // MARK: Pace

    @Test func `background pushes beyond the hour's limit wait once`() throws {
        var state = state(silentPerHour: 1)
        let silent = deliveries(1...3) { $0.notification.pushType = .background }
        let admission = admit(silent, to: &state)
        #expect(admission.requests.count == 1)
        _ = state.take(answer(admission.requests, .accepted), at: now)
        let taken = state.nextStep()
        let waiting = try #require(taken).retries
        #expect(waiting.map(\.reason) == [.devicePace, .devicePace])
        let waits = waiting.map { $0.dueAt.duration(since: now) }
        #expect(waits == [.seconds(3600), .seconds(7200)])
        // The same holds after a restart, when the hour's pushes are forgotten.
        var restarted = self.state(silentPerHour: 1)
        let again = restarted.admit(due: waiting, withdrawn: [:], at: waiting[1].dueAt)
        #expect(again.requests.count == 2)
    }

    @Test func `a device that the gateway wants left alone gets no pushes`() {
        var state = state()
        let first = admit(deliveries(1...1), to: &state)
        let tooMany = Self.refusal(
            429, "TooManyRequests", .retry(after: .seconds(30), scope: .device))
        _ = state.take(answer(first.requests, tooMany), at: now)
        let next = admit(deliveries(2...2), to: &state)
        #expect(next.requests.isEmpty)
        let reasons = state.nextStep()?.retries.map(\.reason)
        #expect(reasons == [.said("TooManyRequests"), .deviceHold])
    }

    @Test func `deliveries of ranges obey the pace and the window`() {
        var state = state()
        let batch = RangeBatch(
            id: 7, offset: 0, deliveries: deliveries(1...9), isLast: false)
        let first = state.admit(
            batch.deliveries[...], of: batch, atMost: 9, withdrawn: [:], at: now)
        #expect(first.taken == 4)
        #expect(first.actions.isEmpty, "the flow hears of the log's alone")
        #expect(state.rangeRoom == 0)
        let actions = state.take(answer(first.requests, .accepted), at: now)
        #expect(actions.names == ["wake ranges", "count", "wake steps"])
        #expect(state.rangeRoom == 0, "it is not durable yet")
    }

    // MARK: What takes another's place

    @Test func `a newer change supersedes a waiting delivery of its record, but no new one`() {
        var state = state()
        let record = RecordID(recordName: Fixtures.identifier("a1"))
        let owed = deliveries(1...2) {
            $0.notification.collapseID = "art"
            $0.collapsingRecord = record
        }
        let admission = admit(owed, to: &state)
        #expect(admission.requests.count == 2)
        let retry = Retry(
            delivery: owed[0], attempts: 0, dueAt: now, reason: .said(""))
        let again = state.admit(due: [retry], withdrawn: [:], at: now)
        #expect(again.taken == 1 && again.requests.isEmpty)
        let letters = state.nextStep()?.deadLetters.map(\.reason)
        #expect(letters == ["superseded by a newer change of the record"])
    }

    @Test func `collapse IDs are compared by bytes, as the gateway does`() {
        func delivery(_ position: UInt64, collapsing id: String) -> Delivery {
            let owed = deliveries(position...position) {
                $0.notification.collapseID = id
                $0.collapsingRecord = RecordID(recordName: Fixtures.identifier("a1"))
            }
            return owed[0].delivery
        }
        var memory = CollapseMemory()
        memory.insert(delivery(2, collapsing: "e\u{301}"))
        #expect(memory.supersedes(delivery(1, collapsing: "e\u{301}")))
        #expect(!memory.supersedes(delivery(1, collapsing: "\u{E9}")))
    }
}

extension [DeliveryAction] {
    /// The actions as short texts, for comparing their order.
    var names: [String] {
        map { action in
            switch action {
            case .began(let requests): "began \(requests.count)"
            case .ended(let ends): "ended \(ends.count)"
            case .tellAnswers(let answers): "tellAnswers \(answers.count)"
            case .count: "count"
            case .showHalts(let count): "showHalts \(count)"
            case .showProgress: "showProgress"
            case .tellHalt(let halt, _): "tellHalt \(halt.reason)"
            case .tellAlarm(let alarm): "tellAlarm \(alarm.answer.reason)"
            case .tellEndOfHalt: "tellEndOfHalt"
            case .wake(let waiter): "wake \(waiter)"
            }
        }
    }
}
