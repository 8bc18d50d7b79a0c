import RelayModel

/// The last events of one container, numbered from 1; the oldest are dropped.
struct EventRing: Sendable {
    /// The events that a listener gets in one answer.
    struct Page: Sendable {
        var events: [(number: UInt64, event: WalkEvent)] = []
        /// The number of the last event that was examined.
        var last: UInt64
        /// The number of events that were dropped before this listener could see them, wanted or
        /// not.
        var missed: UInt64
    }

    private var slots: [WalkEvent?]
    private var bytes = 0
    private let mostBytes: Int
    /// The number of the oldest event that is kept.
    private var first: UInt64 = 1
    /// The number of the next event.
    private var next: UInt64 = 1
    /// The subjects of recent positions; an event about a push does not contain its subject.
    private var subjects: [LogPosition: WalkEvent.Subject] = [:]
    private var recent: [LogPosition] = []

    /// The minimum number of positions whose subjects are kept.
    private static let mostSubjects = 512

    /// Creates a ring that is bounded by the number of events and, approximately, by their bytes;
    /// the newest event is always kept.
    init(events: Int, bytes: Int) {
        slots = Array(repeating: nil, count: events)
        mostBytes = bytes
    }

    /// The number of the newest event; 0 if there is none.
    var last: UInt64 { next - 1 }

    /// Appends an event.
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

    /// Returns the events after `number` that match `filter`, at most `limit`, and about `room`
    /// bytes.
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
