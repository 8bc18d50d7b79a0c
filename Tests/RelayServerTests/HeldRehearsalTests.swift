import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// How holds (throttles, quiet hours, digests) reduce the pushes that a rehearsal reports.
@Suite struct HeldRehearsalTests {
    private static func moment(_ text: String) throws -> Timestamp {
        try #require(Timestamp(iso8601: text))
    }

    private static func outcome(
        at seconds: [Int64], to device: DeviceKindness = DeviceKindness(),
        from start: Timestamp = Fixtures.moment,
        _ edit: (inout SubscriptionKindness) throws -> Void = { _ in }
    ) throws -> HeldRehearsal.Outcome {
        var subscription = Fixtures.subscription("s", of: "alice", where: "TRUEPREDICATE")
        subscription.notificationInfo.alertBody = "New"
        try edit(&subscription.kindness)
        var rehearsal = HeldRehearsal(of: subscription, to: device)
        for second in seconds { rehearsal.fire(at: start.advanced(by: .seconds(second))) }
        rehearsal.finish()
        return rehearsal.outcome
    }

    @Test func `a digest combines all changes of its span into one push`() throws {
        let left = try Self.outcome(at: [0, 10, 59, 60, 100, 200]) {
            $0.digest = try PushDigest(json: ["seconds": 60], path: "")
        }
        #expect(left == .init(pushes: 3, together: 3, waiting: 0, held: [.digest: 6]))
    }

    @Test func `a throttle lets some pushes go and combines the rest into one`() throws {
        let left = try Self.outcome(at: [0, 1, 2, 3, 70]) {
            $0.throttle = try PushThrottle(json: ["pushes": 2, "seconds": 60], path: "")
        }
        #expect(left == .init(pushes: 4, together: 1, waiting: 0, held: [.throttle: 2]))
    }

    @Test func `quiet hours hold up to twenty pushes and combine the others into one`() throws {
        var device = DeviceKindness()
        device.quietHours = try QuietHours(
            json: ["timeZone": "UTC", "from": "22:00", "until": "07:00"], path: "")
        let night = try Self.moment("2026-11-24T23:00:00Z")
        let many = Array(repeating: Int64(0), count: Limits.maximumHeldDeliveries + 5)
        let left = try Self.outcome(at: many, to: device, from: night)
        #expect(
            left
                == .init(
                    pushes: Limits.maximumHeldDeliveries + 1, together: 4, waiting: 0,
                    held: [.quietHours: Limits.maximumHeldDeliveries + 5]))
        let urgent = try Self.outcome(at: many, to: device, from: night) { $0.isUrgent = true }
        #expect(urgent == .init(pushes: many.count))
        // A digest that ends at night is sent in the morning.
        let both = try Self.outcome(at: [0, 8000], to: device, from: night) {
            $0.digest = try PushDigest(json: ["seconds": 3600], path: "")
        }
        #expect(both == .init(pushes: 1, together: 1, waiting: 0, held: [.digest: 2]))
    }

    @Test func `a paused delivery waits, and one without limits is sent`() throws {
        let paused = try Self.outcome(at: [0, 1, 2]) { $0.isPaused = true }
        #expect(paused == .init(pushes: 0, together: 0, waiting: 3, held: [.paused: 3]))
        #expect(try Self.outcome(at: [0, 1, 2]) == .init(pushes: 3))
    }
}
