import RelayModel

/// The last events of one container, by number from 1; the oldest make room.
struct EventRing: Sendable {
    /// What listeners are told at once.
    struct Page: Sendable {
        var events: [(number: UInt64, event: WalkEvent)] = []
        /// The number up to which was looked.
        var last: UInt64
        /// How many events went before they could be looked at, wanted or not.
        var missed: UInt64
    }

    private var slots: [WalkEvent?]
    private var bytes = 0
    private let mostBytes: Int
    /// The number of the oldest event that is kept.
    private var first: UInt64 = 1
    /// The number of the next one.
    private var next: UInt64 = 1
    /// What recent positions are about: a push does not say.
    private var subjects: [LogPosition: WalkEvent.Subject] = [:]
    private var recent: [LogPosition] = []

    /// Positions of which it is known what they are about.
    private static let mostSubjects = 512

    /// Bounds what is kept by number and, about, by bytes; the newest event is kept in any case.
    init(events: Int, bytes: Int) {
        slots = Array(repeating: nil, count: events)
        mostBytes = bytes
    }

    /// The number of the newest event; 0 before the first.
    var last: UInt64 { next - 1 }

    /// Keeps an event as the newest.
    mutating func append(_ event: WalkEvent) {
        var event = event
        if let subject = event.subject {
            note(subject, at: event.position)
        } else {
            event.subject = subjects[event.position]
        }
        if next - first == UInt64(slots.count) { dropFirst() }
        slots[place(of: next)] = event
        bytes += event.bytes
        next += 1
        while bytes > mostBytes, first + 1 < next { dropFirst() }
    }

    /// The events after `number` that `filter` wants, at most `limit` and about `room` bytes.
    func page(after number: UInt64, _ filter: EventFilter, limit: Int, room: Int) -> Page {
        var page = Page(last: number, missed: first > number + 1 ? first - number - 1 : 0)
        var taken = 0
        var current = max(first, number + 1)
        while current < next, page.events.count < limit, taken < room {
            if let event = slots[place(of: current)], filter.wants(event) {
                page.events.append((current, event))
                taken += event.bytes
            }
            page.last = current
            current += 1
        }
        return page
    }

    private mutating func dropFirst() {
        let place = place(of: first)
        bytes -= slots[place]?.bytes ?? 0
        slots[place] = nil
        first += 1
    }

    private func place(of number: UInt64) -> Int {
        Int(number % UInt64(slots.count))
    }

    private mutating func note(_ subject: WalkEvent.Subject, at position: LogPosition) {
        guard subjects.updateValue(subject, forKey: position) == nil else { return }
        recent.append(position)
        guard recent.count > 2 * Self.mostSubjects else { return }
        for old in recent.prefix(Self.mostSubjects) { subjects[old] = nil }
        recent.removeFirst(Self.mostSubjects)
    }
}
