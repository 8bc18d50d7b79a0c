package import RelayModel
package import Storage

/// When devices got the last pushes of subscriptions that are not to push more than so often.
///
/// What finds no place is told together with what follows, and takes the first place that is free:
/// until it has, nothing else takes one. The book remembers the lines that it met last; whatever
/// else counts is durable, and whoever holds it has it learn that before it is asked.
package struct ThrottleMemory: Sendable {
    private struct Line {
        /// Its last pushes, the oldest first.
        var sent: [(id: DeliveryID, at: Timestamp)] = []
        /// Whether something waits for a place.
        var isWaitedFor = false
    }

    /// Subscriptions and devices that are remembered, the last ones.
    private static let limit = 16_384

    private var lines = RecentMemory<ThrottledLine, Line>(limit: limit)
    /// Places that are not durable yet: of the pushes that are in flight.
    private var unrecorded: [ThrottledLine: [DeliveryID: ThrottlePlace]] = [:]
    private let isRecorded: Bool

    /// Nothing has been sent yet.
    ///
    /// `isRecorded` says whether places become durable: then each is kept until it is.
    package init(isRecorded: Bool = true) {
        self.isRecorded = isRecorded
    }

    // MARK: What is durable

    /// The lines of `deliveries` that have a throttle and are not remembered; the others stay
    /// remembered while these are learned.
    package mutating func unknownLines(
        among deliveries: some Sequence<OwedDelivery>
    ) -> Set<ThrottledLine> {
        var unknown: Set<ThrottledLine> = []
        for owed in deliveries where owed.kindness?.subscription.throttle != nil {
            let line = ThrottledLine(owed.delivery)
            if !lines.keep(line) { unknown.insert(line) }
        }
        return unknown
    }

    /// Takes in what is durable of lines; of one that it remembers it knows better.
    package mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        for past in pasts where lines[past.line] == nil {
            let open = unrecorded[past.line] ?? [:]
            let places = past.places.filter { open[$0.deliveryID] == nil } + open.values
            lines[past.line] = Line(
                // Of a clock that was set back since nothing is known, but that it is past.
                sent: places.map { ($0.deliveryID, min($0.takenAt, now)) }
                    .sorted { $0.1 < $1.1 },
                isWaitedFor: past.isWaitedFor)
        }
    }

    /// The place that `delivery` took and that is to become durable.
    package func unrecordedPlace(of delivery: Delivery) -> ThrottlePlace? {
        unrecorded.isEmpty ? nil : unrecorded[ThrottledLine(delivery)]?[delivery.id]
    }

    /// Learns that places are durable.
    package mutating func recorded(_ places: [ThrottlePlace]) {
        for place in places {
            unrecorded[place.line]?[place.deliveryID] = nil
            if unrecorded[place.line]?.isEmpty == true { unrecorded[place.line] = nil }
        }
    }

    // MARK: Places

    /// Takes a place for `delivery`, which is about to be sent; returns when there will be one if
    /// there is none now.
    ///
    /// What has a place takes no other, however often it is sent; and what `hasGone` once goes
    /// again, and counts.
    package mutating func place(
        _ delivery: Delivery, _ throttle: PushThrottle, hasGone: Bool = false, at now: Timestamp
    ) -> Timestamp? {
        let key = ThrottledLine(delivery)
        let span = Duration.seconds(throttle.seconds)
        var line = lines[key] ?? Line()
        line.sent.removeAll { $0.at.advanced(by: span) <= now }
        defer { lines[key] = line }
        if line.sent.contains(where: { $0.id == delivery.id }) { return nil }
        let isFull = line.sent.count >= throttle.pushes
        if !hasGone, isFull || line.isWaitedFor && delivery.standsFor == nil {
            line.isWaitedFor = true
            let leaving = line.sent.count - throttle.pushes
            return isFull ? line.sent[leaving].at.advanced(by: span) : now
        }
        if !hasGone { line.isWaitedFor = false }
        line.sent.append((delivery.id, now))
        guard isRecorded else { return nil }
        unrecorded[key, default: [:]][delivery.id] = ThrottlePlace(
            key, delivery.id, takenAt: now, endsAt: now.advanced(by: span))
        return nil
    }

    /// The clock goes `step` later than it did.
    package mutating func clockWasSetBack(by step: Duration) {
        lines.update { line in
            Line(
                sent: line.sent.map { ($0.id, $0.at.back(by: step)) },
                isWaitedFor: line.isWaitedFor)
        }
        for (line, places) in unrecorded {
            unrecorded[line] = places.mapValues { place in
                ThrottlePlace(
                    line, place.deliveryID, takenAt: place.takenAt.back(by: step),
                    endsAt: place.endsAt.back(by: step))
            }
        }
    }
}
