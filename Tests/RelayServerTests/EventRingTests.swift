import Fanout
import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// The ring of events that is kept for listeners, without a relay.
@Suite struct EventRingTests {
    private static func event(
        _ kind: WalkEvent.Kind = .push, at position: UInt64, bytes: Int = 0
    ) -> WalkEvent {
        var event = WalkEvent(kind: kind, at: Fixtures.moment, position: LogPosition(position))
        event.notification = PushNotification(
            pushType: .alert, priority: 10, topic: "t",
            payload: Array(repeating: 0x20, count: bytes))
        return event
    }

    private static func numbers(_ page: EventRing.Page) -> [UInt64] {
        page.events.map(\.number)
    }

    @Test func `the oldest events make room, and a late listener learns how many it missed`() {
        var ring = EventRing(events: 4, bytes: 1_000_000)
        for position in 1...6 { ring.append(Self.event(at: UInt64(position))) }
        let all = ring.page(after: 0, EventFilter(), limit: 100, room: 1_000_000)
        #expect(Self.numbers(all) == [3, 4, 5, 6])
        #expect(all.missed == 2)
        let rest = ring.page(after: 4, EventFilter(), limit: 100, room: 1_000_000)
        #expect(Self.numbers(rest) == [5, 6])
        #expect(rest.missed == 0)
        let none = ring.page(after: 6, EventFilter(), limit: 100, room: 1_000_000)
        #expect(none.events.isEmpty && none.last == 6 && none.missed == 0)
    }

    @Test func `bytes are bounded, and the newest event is kept`() {
        var ring = EventRing(events: 100, bytes: 10_000)
        for position in 1...9 { ring.append(Self.event(at: UInt64(position), bytes: 3_000)) }
        let all = ring.page(after: 0, EventFilter(), limit: 100, room: 1_000_000)
        #expect(Self.numbers(all) == [8, 9])
        ring.append(Self.event(at: 10, bytes: 50_000))
        #expect(
            Self.numbers(ring.page(after: 0, EventFilter(), limit: 9, room: 1_000_000)) == [10])
    }

    @Test func `a page ends at its limits and continues after what was examined`() {
        var ring = EventRing(events: 100, bytes: 1_000_000)
        for position in 1...9 {
            ring.append(Self.event(position % 2 == 0 ? .push : .change, at: UInt64(position)))
        }
        var filter = EventFilter()
        filter.kinds = [.push]
        let first = ring.page(after: 0, filter, limit: 2, room: 1_000_000)
        #expect(Self.numbers(first) == [2, 4])
        #expect(first.last == 4)
        let second = ring.page(after: 4, filter, limit: 100, room: 1_000_000)
        #expect(Self.numbers(second) == [6, 8])
        #expect(second.last == 9)
        let narrow = ring.page(after: 0, EventFilter(), limit: 100, room: 1)
        #expect(Self.numbers(narrow) == [1])
    }

    @Test func `a push event names the record of its change`() {
        var ring = EventRing(events: 100, bytes: 1_000_000)
        var change = Self.event(.change, at: 7)
        change.subject = WalkEvent.Subject(
            operation: .create, recordType: Fixtures.identifier("Todo"),
            recordName: Fixtures.identifier("t1"))
        ring.append(change)
        ring.append(Self.event(at: 7))
        ring.append(Self.event(at: 8))
        var filter = EventFilter()
        filter.recordType = Fixtures.identifier("Todo")
        #expect(
            Self.numbers(ring.page(after: 0, filter, limit: 100, room: 1_000_000)) == [1, 2])
    }

    @Test func `filters by user and subscription use what the change fired`() {
        var change = Self.event(.change, at: 7)
        var filter = EventFilter()
        filter.user = Fixtures.identifier("alice")
        #expect(!filter.wants(change))
        change.firedFirst = [
            JudgedChange.Fired(
                serial: 1, id: Fixtures.identifier("s1"), owner: Fixtures.identifier("alice"))
        ]
        #expect(filter.wants(change))
        filter.subscription = Fixtures.identifier("s2")
        #expect(!filter.wants(change))
    }
}
