import Gateway
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import Delivery

/// What is held back for its recipient's sake, and what releases it.
@Suite struct HoldTests {
    private static let zurich = "Europe/Zurich"

    private static func moment(_ text: String) throws -> Timestamp {
        try #require(Timestamp(iso8601: text))
    }

    private static func owed(
        _ position: UInt64 = 1, _ pushType: PushType = .alert,
        _ edit: (inout Kindness) throws -> Void
    ) rethrows -> OwedDelivery {
        var owed = Fixtures.delivery(at: position)
        owed.delivery.notification.pushType = pushType
        var kindness = Kindness(
            subscription: SubscriptionKindness(), device: DeviceKindness(),
            subscriptionSerial: 1, deviceSerial: 1)
        try edit(&kindness)
        owed.kindness = kindness
        return owed
    }

    private static func night(
        from: String = "22:00", until: String = "07:00"
    ) throws -> QuietHours {
        try QuietHours(
            json: ["timeZone": .string(zurich), "from": .string(from), "until": .string(until)],
            path: "")
    }

    // MARK: Time zones

    @Test func `time zones are those of the zone database`() {
        #expect(ZoneClock.has("Europe/Zurich") && ZoneClock.has("UTC"))
        #expect(ZoneClock.has("America/Argentina/Buenos_Aires"))
        for name in ["", "Zurich", "Europe/Zürich", "GMT+1", "../etc/passwd", "Europe/Nowhere"] {
            #expect(!ZoneClock.has(name), "\(name)")
        }
    }

    /// In Zurich, 02:00 is followed by 03:00 in spring, and 03:00 by 02:00 in autumn.
    static let changes = [
        ("22:00", "07:00", "2026-03-28T22:30:00Z", "2026-03-29T05:00:00Z"),
        ("22:00", "07:00", "2026-10-24T21:30:00Z", "2026-10-25T06:00:00Z"),
        ("22:00", "02:30", "2026-03-28T22:30:00Z", "2026-03-29T01:30:00Z"),
        ("22:00", "02:30", "2026-10-24T21:30:00Z", "2026-10-25T00:30:00Z"),
        ("02:00", "03:30", "2026-10-25T01:45:00Z", "2026-10-25T02:30:00Z"),
    ]

    @Test(arguments: changes) func `quiet hours end by the device's clock`(
        from: String, until: String, now: String, end: String
    ) throws {
        var zones = ZoneClock()
        let hours = try Self.night(from: from, until: until)
        let found = hours.end(at: try Self.moment(now)) { zones.offset(of: Self.zurich, at: $0) }
        #expect(found?.iso8601Seconds == end)
    }

    /// Quiet hours in Zurich, a moment, and the span that holds the moment, if there is one.
    static let spans: [(String, String, String, String?)] = [
        // In spring 02:30 does not exist, so the hours last until 03:30, also for new deliveries.
        ("22:00", "02:30", "2026-03-29T01:01:00Z", "2026-03-28T21:00:00Z/2026-03-29T01:30:00Z"),
        ("22:00", "02:30", "2026-03-29T01:29:00Z", "2026-03-28T21:00:00Z/2026-03-29T01:30:00Z"),
        ("22:00", "02:30", "2026-03-29T01:30:00Z", nil),
        // In autumn 02:30 comes twice, and the hours end with the first.
        ("22:00", "02:30", "2026-10-25T00:29:59Z", "2026-10-24T20:00:00Z/2026-10-25T00:30:00Z"),
        ("22:00", "02:30", "2026-10-25T00:31:00Z", nil),
        ("22:00", "02:30", "2026-10-25T01:29:00Z", nil),
        // Hours that begin within the hour that is skipped.
        ("02:30", "07:00", "2026-03-29T00:59:59Z", nil),
        ("02:30", "07:00", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z/2026-03-29T05:00:00Z"),
        ("02:30", "03:15", "2026-03-29T01:10:00Z", "2026-03-29T01:00:00Z/2026-03-29T01:15:00Z"),
        ("02:15", "02:45", "2026-03-29T01:44:00Z", "2026-03-29T01:00:00Z/2026-03-29T01:45:00Z"),
        // Hours that begin, or begin and end, within the hour that comes twice.
        ("02:30", "07:00", "2026-10-25T00:29:59Z", nil),
        ("02:30", "07:00", "2026-10-25T01:15:00Z", "2026-10-25T00:30:00Z/2026-10-25T06:00:00Z"),
        ("02:15", "02:45", "2026-10-25T00:20:00Z", "2026-10-25T00:15:00Z/2026-10-25T00:45:00Z"),
        ("02:15", "02:45", "2026-10-25T01:20:00Z", nil),
        ("02:45", "02:15", "2026-10-25T00:30:00Z", nil),
        ("02:45", "02:15", "2026-10-25T00:50:00Z", "2026-10-25T00:45:00Z/2026-10-26T01:15:00Z"),
        // Hours around the change, and on the days beside it.
        ("01:00", "03:30", "2026-03-29T00:30:00Z", "2026-03-29T00:00:00Z/2026-03-29T01:30:00Z"),
        ("01:00", "03:30", "2026-10-25T01:45:00Z", "2026-10-24T23:00:00Z/2026-10-25T02:30:00Z"),
        ("22:00", "07:00", "2026-03-30T00:00:00Z", "2026-03-29T20:00:00Z/2026-03-30T05:00:00Z"),
        ("22:00", "07:00", "2026-07-01T00:00:00Z", "2026-06-30T20:00:00Z/2026-07-01T05:00:00Z"),
        ("12:00", "13:00", "2026-03-29T10:30:00Z", "2026-03-29T10:00:00Z/2026-03-29T11:00:00Z"),
        ("12:00", "13:00", "2026-03-29T11:30:00Z", nil),
    ]

    @Test(arguments: spans) func `quiet hours are one span on the device's clock`(
        from: String, until: String, now: String, span: String?
    ) throws {
        var zones = ZoneClock()
        let hours = try Self.night(from: from, until: until)
        let found = hours.span(around: try Self.moment(now)) {
            zones.offset(of: Self.zurich, at: $0)
        }
        #expect(
            found.map { "\($0.lowerBound.iso8601Seconds)/\($0.upperBound.iso8601Seconds)" }
                == span)
    }

    @Test func `quiet hours hold new deliveries until waiting ones are released`() throws {
        var zones = ZoneClock()
        let days = [("2026-03-28", "02:30"), ("2026-10-24", "02:30"), ("2026-03-28", "01:10")]
        for (day, from) in days {
            let hours = try Self.night(from: from, until: "02:20")
            let start = try Self.moment("\(day)T12:00:00Z")
            for minute in Int64(0)..<2880 {
                let now = start.advanced(by: .seconds(60 * minute))
                let span = hours.span(around: now) { zones.offset(of: Self.zurich, at: $0) }
                guard let span else { continue }
                #expect(span.contains(now))
                let last = span.upperBound.advanced(by: .seconds(-1))
                let end = hours.end(at: last) { zones.offset(of: Self.zurich, at: $0) }
                #expect(end.map { span.upperBound <= $0 } == true, "\(now.iso8601Seconds)")
            }
        }
    }

    // MARK: What holds

    @Test func `quiet hours hold visible pushes unless they are urgent`() throws {
        var rules = HoldRules()
        let now = try Self.moment("2026-11-24T22:00:00Z")
        let quiet = try Self.owed { $0.device.quietHours = try Self.night() }
        #expect(
            rules.hold(on: quiet, at: now)
                == .init(reason: .quietHours, until: try Self.moment("2026-11-25T06:00:00Z")))
        #expect(rules.hold(on: quiet, at: try Self.moment("2026-11-24T12:00:00Z")) == nil)
        let urgent = try Self.owed {
            $0.device.quietHours = try Self.night()
            $0.subscription.isUrgent = true
        }
        #expect(rules.hold(on: urgent, at: now) == nil)
        let silent = try Self.owed(1, .background) { $0.device.quietHours = try Self.night() }
        #expect(rules.hold(on: silent, at: now) == nil)
        let paused = Self.owed(1, .background) { $0.subscription.isPaused = true }
        #expect(rules.hold(on: paused, at: now) == .init(reason: .paused, until: nil))
        #expect(rules.hold(on: Fixtures.delivery(at: 1), at: now) == nil)
    }

    private func state() -> DeliveryState {
        DeliveryState(
            mark: .start, settings: DeliverySettings(), judge: OutcomeJudge(),
            generator: SeededGenerator(seed: 1), tellsEnds: false)
    }

    @Test func `a held delivery becomes a retry without an attempt, and is sent when due`()
        throws
    {
        var state = state()
        let now = try Self.moment("2026-11-24T22:00:00Z")
        let owed = try Self.owed { $0.device.quietHours = try Self.night() }
        let admission = state.admit([owed][...], atMost: 1, withdrawn: [:], at: now)
        #expect(admission.taken == 1 && admission.requests.isEmpty)
        let taken = state.nextStep()
        let step = try #require(taken)
        let retry = try #require(step.retries.first)
        #expect(retry.attempts == 0 && retry.reason == .held(.quietHours))
        #expect(retry.judgedBy == JudgedVersions(subscription: 1, device: 1))
        #expect(step.receipts.map(\.outcome) == [.deferred])
        #expect(step.receipts.map(\.reason) == ["held: quiet hours"])
        _ = state.stepRecorded(step)
        // A retry that is read early is held on. Without the hours it is sent.
        let early = state.admit(due: [retry], withdrawn: [:], at: now)
        #expect(early.requests.isEmpty)
        let held = state.nextStep()
        #expect(held?.retries.map(\.dueAt) == [retry.dueAt])
        _ = state.stepRecorded(try #require(held))
        let due = state.admit(due: [retry], withdrawn: [:], at: retry.dueAt)
        #expect(due.requests.map(\.deliveryID) == [owed.delivery.id])
    }

    @Test func `the delay of a push that was held is not measured`() throws {
        var state = state()
        let now = Fixtures.moment
        let waits: [WaitReason] = [
            .held(.quietHours), .together, .devicePace, .redriven(after: .attempts, cause: ""),
        ]
        let held = waits.enumerated().map { index, reason in
            Retry(
                delivery: Fixtures.delivery(at: UInt64(index) + 2), attempts: 0, dueAt: now,
                reason: reason)
        }
        let failed = Retry(
            delivery: Fixtures.delivery(at: 9), attempts: 1, dueAt: now, reason: .said("503"))
        let plain = Fixtures.delivery(at: 1)
        let first = state.admit([plain][...], atMost: 1, withdrawn: [:], at: now)
        let again = state.admit(due: held + [failed], withdrawn: [:], at: now)
        let requests = first.requests + again.requests
        #expect(requests.count == 6)
        let late = plain.delivery.appendedAt.advanced(by: .seconds(3600))
        let tallies = Self.tallies(
            state.take(
                requests.map {
                    PushCompletion(
                        ticket: $0.ticket, outcome: .accepted, latency: .seconds(1))
                }, at: late))
        #expect(tallies.flatMap(\.delays).count == 2)
        #expect(tallies.map { $0.endings[.accepted] } == [6])
    }

    @Test func `a delivery that expires while it is held becomes a dead letter`() throws {
        var state = state()
        let now = try Self.moment("2026-11-24T22:00:00Z")
        var quiet = try Self.owed(1) { $0.device.quietHours = try Self.night() }
        quiet.delivery.notification.expiration = now.advanced(by: .seconds(3600))
        var paused = Self.owed(2) { $0.subscription.isPaused = true }
        paused.delivery.notification.expiration = now.advanced(by: .seconds(3600))
        let first = state.admit([quiet, paused][...], atMost: 2, withdrawn: [:], at: now)
        #expect(Self.tallies(first.actions).compactMap { $0.endings[.expiredHeld] } == [1])
        let taken = state.nextStep()
        let step = try #require(taken)
        #expect(step.deadLetters.map(\.reason) == ["expired: held: quiet hours"])
        // The moment of resuming is unknown, so the delivery is looked at again when it expires.
        #expect(step.retries.map(\.dueAt) == [now.advanced(by: .seconds(3600))])
        _ = state.stepRecorded(step)
        let late = now.advanced(by: .seconds(3600))
        let last = state.admit(due: step.retries, withdrawn: [:], at: late)
        #expect(Self.tallies(last.actions).compactMap { $0.endings[.expiredHeld] } == [1])
        #expect(
            state.nextStep()?.deadLetters.map(\.reason)
                == ["expired: held: the subscription is paused"])
    }

    @Test func `a delivery that expires unsent after its hold counts as expired`() throws {
        var state = state()
        let now = try Self.moment("2026-11-24T22:00:00Z")
        var quiet = try Self.owed(1) { $0.device.quietHours = try Self.night() }
        quiet.delivery.notification.expiration = now.advanced(by: .seconds(20 * 3600))
        _ = state.admit([quiet][...], atMost: 1, withdrawn: [:], at: now)
        let taken = state.nextStep()
        let step = try #require(taken)
        #expect(step.retries.count == 1)
        _ = state.stepRecorded(step)
        // The night is long over, but the gateway or the relay was away.
        let late = now.advanced(by: .seconds(20 * 3600))
        let last = state.admit(due: step.retries, withdrawn: [:], at: late)
        let endings = Self.tallies(last.actions).map(\.endings)
        #expect(endings.compactMap { $0[.expired] } == [1])
        #expect(endings.compactMap { $0[.expiredHeld] } == [])
    }

    // MARK: Connected devices

    /// A presence whose devices are all connected or all not, and which see what a test says.
    private final class Connections: DevicePresence {
        private let state: Mutex<(isConnected: Bool, waits: Set<DeliveryID>, seen: Set<DeliveryID>)>

        init(_ isConnected: Bool = true) { state = Mutex((isConnected, [], [])) }

        var waits: Set<DeliveryID> { state.withLock { $0.waits } }

        func see(_ delivery: DeliveryID) { state.withLock { _ = $0.seen.insert(delivery) } }

        func awaitDevice(of delivery: Delivery, at now: Timestamp) -> Bool {
            state.withLock { state in
                if state.isConnected { state.waits.insert(delivery.id) }
                return state.isConnected
            }
        }

        func endWait(for delivery: DeliveryID) -> Bool {
            state.withLock { $0.waits.remove(delivery) != nil && $0.seen.contains(delivery) }
        }

        func watch(_ deliveries: [Delivery]) {}

        func decided() async -> [DeliveryID] { [] }
    }

    /// Returns the counts among the actions.
    private static func tallies(_ actions: [DeliveryAction]) -> [DeliveryMeter.Tally] {
        actions.compactMap { if case .count(let tally) = $0 { tally } else { nil } }
    }

    private func state(_ connections: Connections) -> DeliveryState {
        DeliveryState(
            mark: .start, settings: DeliverySettings(), judge: OutcomeJudge(),
            generator: SeededGenerator(seed: 1), tellsEnds: false, presence: connections)
    }

    @Test func `a push that a connected device has seen is not sent, and is accounted for`() throws
    {
        let connections = Connections()
        var state = state(connections)
        let now = Fixtures.moment
        let owed = Self.owed { $0.device.isUnlessConnected = true }
        let plain = Self.owed(2) { _ in }
        let admission = state.admit([owed, plain][...], atMost: 2, withdrawn: [:], at: now)
        #expect(admission.requests.map(\.deliveryID) == [plain.delivery.id])
        #expect(connections.waits == [owed.delivery.id])
        let holds = Self.tallies(admission.actions).map(\.holds)
        #expect(holds == [[.connected: 1]], "the metrics tell of it")
        let taken = state.nextStep()
        let step = try #require(taken)
        let retry = try #require(step.retries.first)
        #expect(retry.reason == .held(.connected) && retry.attempts == 0)
        #expect(retry.dueAt == now.advanced(by: HoldRules.patienceWithConnections))
        _ = state.stepRecorded(step)
        connections.see(owed.delivery.id)
        let late = state.admit(due: [retry], withdrawn: [:], at: now)
        #expect(late.requests.isEmpty && connections.waits.isEmpty)
        #expect(Self.tallies(late.actions).map(\.endings) == [[.seen: 1]])
        let next = state.nextStep()
        let end = try #require(next)
        #expect(end.receipts.map(\.outcome) == [.seen])
        #expect(end.endedRetries == [owed.delivery.id])
        #expect(end.tallies.values.map(\.seen) == [1])
        #expect(end.tallies.values.map(\.owed) == [0])
    }

    @Test func `an unseen push obeys the other holds, and waits for a connection only once`()
        throws
    {
        let connections = Connections()
        var state = state(connections)
        let now = try Self.moment("2026-11-24T22:00:00Z")
        var owed = Self.owed { $0.subscription.isUnlessConnected = true }
        _ = state.admit([owed][...], atMost: 1, withdrawn: [:], at: now)
        let taken = state.nextStep()
        let step = try #require(taken)
        var retry = try #require(step.retries.first)
        _ = state.stepRecorded(step)
        // Meanwhile the device has asked for quiet hours.
        owed.kindness?.device.quietHours = try Self.night()
        retry.delivery = owed
        let quiet = state.admit(due: [retry], withdrawn: [:], at: retry.dueAt)
        #expect(quiet.requests.isEmpty)
        let held = state.nextStep()
        #expect(held?.retries.map(\.reason) == [.held(.quietHours)])
        _ = state.stepRecorded(try #require(held))
        owed.kindness?.device.quietHours = nil
        retry.delivery = owed
        let sent = state.admit(due: [retry], withdrawn: [:], at: retry.dueAt)
        #expect(sent.requests.map(\.deliveryID) == [owed.delivery.id])
    }

    @Test func `a push is sent if no device is connected, or it cannot wait`() throws {
        let now = Fixtures.moment
        let owed = Self.owed { $0.device.isUnlessConnected = true }
        var absent = state(Connections(false))
        #expect(absent.admit([owed][...], atMost: 1, withdrawn: [:], at: now).requests.count == 1)
        var short = state(Connections())
        var brief = owed
        brief.delivery.notification.expiration = now.advanced(by: .seconds(9))
        #expect(short.admit([brief][...], atMost: 1, withdrawn: [:], at: now).requests.count == 1)
        // The setting is taken back while the delivery waits, so it is pushed whether or not it
        // was seen.
        let connections = Connections()
        var changed = state(connections)
        _ = changed.admit([owed][...], atMost: 1, withdrawn: [:], at: now)
        let taken = changed.nextStep()
        var retry = try #require(taken?.retries.first)
        _ = changed.stepRecorded(try #require(taken))
        connections.see(owed.delivery.id)
        retry.delivery.kindness = nil
        #expect(changed.admit(due: [retry], withdrawn: [:], at: now).requests.count == 1)
    }

    // MARK: Told together

    private static func digest(_ seconds: Int64) throws -> PushDigest {
        try PushDigest(json: ["seconds": .integer(seconds)], path: "")
    }

    @Test func `a digest waits for its span, and on until quiet hours end`() throws {
        var rules = HoldRules()
        let now = try Self.moment("2026-11-24T12:00:00Z")
        let owed = try Self.owed { $0.subscription.digest = try Self.digest(60) }
        #expect(
            rules.hold(on: owed, at: now)
                == .init(reason: .digest, until: now.advanced(by: .seconds(60))))
        #expect(rules.hold(on: owed, attempts: 1, at: now) == nil, "it was sent before")
        var told = owed
        told.delivery.standsFor = 3
        #expect(rules.hold(on: told, at: now) == nil)
        let night = try Self.owed {
            $0.subscription.digest = try Self.digest(3600)
            $0.device.quietHours = try Self.night()
        }
        #expect(
            rules.hold(on: night, at: try Self.moment("2026-11-24T20:30:00Z"))?.until
                == (try Self.moment("2026-11-25T06:00:00Z")))
    }

    private static func few(
        _ position: UInt64, standsFor: Int64? = nil, _ pushes: Int = 2
    ) throws -> OwedDelivery {
        var owed = try Self.owed(position) {
            $0.subscription.throttle = try PushThrottle(
                json: ["pushes": .integer(Int64(pushes)), "seconds": 60], path: "")
        }
        owed.delivery.standsFor = standsFor
        return owed
    }

    @Test func `a throttle limits pushes in any span, and waiting ones go first`() throws {
        var memory = ThrottleMemory()
        let start = Fixtures.moment
        func place(_ owed: OwedDelivery, at seconds: Int64) throws -> Timestamp? {
            let throttle = try #require(owed.kindness?.subscription.throttle)
            return memory.place(
                owed.delivery, throttle, at: start.advanced(by: .seconds(seconds)))
        }
        func after(_ seconds: Int64) -> Timestamp { start.advanced(by: .seconds(seconds)) }
        #expect(try place(try Self.few(1), at: 0) == nil)
        #expect(try place(try Self.few(2), at: 50) == nil)
        #expect(try place(try Self.few(2), at: 51) == nil, "it has its place")
        #expect(try place(try Self.few(3), at: 52) == after(60))
        #expect(try place(try Self.few(4), at: 60) == after(60), "what waits goes first")
        #expect(try place(try Self.few(5, standsFor: 2), at: 60) == nil)
        #expect(try place(try Self.few(6), at: 61) == after(110))
        #expect(try place(try Self.few(7, standsFor: 1), at: 110) == nil)
        #expect(try place(try Self.few(8), at: 121) == nil)
    }

    @Test func `the times of a throttle are set back with the clock`() throws {
        var memory = ThrottleMemory()
        let throttle = try PushThrottle(json: ["pushes": 1, "seconds": 60], path: "")
        let now = Fixtures.moment
        #expect(memory.place(Fixtures.delivery(at: 1).delivery, throttle, at: now) == nil)
        memory.clockWasSetBack(by: .seconds(1000))
        let early = now.advanced(by: .seconds(-970))
        #expect(
            memory.place(Fixtures.delivery(at: 2).delivery, throttle, at: early)
                == now.advanced(by: .seconds(-940)))
    }

    @Test func `a digest puts its count wherever its texts ask for it`() throws {
        var newest = Fixtures.delivery(at: 9)
        let mark = String(Delivery.countMark)
        newest.delivery.together = Array(
            #"{"aps":{"alert":"\(mark) new, \(mark)\u0301 in all"},"belfry":{"seq":"9"}}"#
                .replacing(#"\(mark)"#, with: mark).utf8)
        let told = Digest(
            id: 1, deliveries: 7, count: 7, openedAt: Fixtures.moment, newest: newest
        ).delivery
        let payload = try JSONValue(stored: told.delivery.notification.payload)
        #expect(payload.value(at: ["aps", "alert"]) == "7 new, 7\u{301} in all")
        #expect(payload.value(at: ["belfry"]) == ["seq": "9", "count": 7])
        // If the count does not fit, the push is sent without it.
        newest.delivery.together = Array(
            "{\"aps\":{\"alert\":\"\(mark)\(String(repeating: "x", count: 4090))\"}}".utf8)
        let long = Digest(
            id: 1, deliveries: 7, count: 7, openedAt: Fixtures.moment, newest: newest
        ).delivery
        #expect(
            try JSONValue(stored: long.delivery.notification.payload)
                == ["belfry": ["count": 7]])
    }

    @Test func `a digest is its newest delivery, with the number of deliveries`() throws {
        var newest = Fixtures.delivery(at: 9)
        newest.delivery.collapsingRecord = Fixtures.change(.create, "r").recordID
        let alone = Digest(
            id: 1, deliveries: 1, count: 1, openedAt: Fixtures.moment, newest: newest
        ).delivery
        #expect(alone.delivery.standsFor == 1)
        #expect(alone.delivery.notification == newest.delivery.notification)
        let several = Digest(
            id: 1, deliveries: 7, count: 8, openedAt: Fixtures.moment, newest: newest
        ).delivery
        #expect(several.delivery.id == newest.delivery.id)
        #expect(several.delivery.standsFor == 8)
        #expect(several.delivery.collapsingRecord == nil)
        let payload = try JSONValue(stored: several.delivery.notification.payload)
        #expect(payload.value(at: ["belfry", "count"]) == .integer(8))
    }
}
