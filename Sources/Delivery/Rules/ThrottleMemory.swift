package import RelayModel
package import Storage

/// The last pushes to each device of each subscription with a throttle.
///
/// A push that finds no place is told together with the following ones, and takes the first place
/// that becomes free. Until it has, no other push takes one. The memory holds the lines that were
/// used last. Other places that still count are durable, and the owner of the memory adds them
/// before it asks for a place.
package struct ThrottleMemory: Sendable {
    private struct Line {
        /// The last pushes, oldest first.
        var sent: [(id: DeliveryID, at: Timestamp)] = []
        /// Whether a delivery waits for a place.
        var isWaitedFor = false
    }

    /// The maximum number of lines that are remembered.
    private static let limit = 16_384

    private var lines = RecentMemory<ThrottledLine, Line>(limit: limit)
    /// The places of pushes in flight, which are not durable yet.
    private var unrecorded: [ThrottledLine: [DeliveryID: ThrottlePlace]] = [:]
    private let isRecorded: Bool

    /// Creates an empty memory.
    ///
    /// `isRecorded` says whether places become durable. If so, each is kept until it is.
    package init(isRecorded: Bool = true) {
        self.isRecorded = isRecorded
    }

    // MARK: What is durable

    /// Returns the lines of `deliveries` that have a throttle and are not remembered.
    ///
    /// The others stay remembered while these are learned.
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

    /// Adds the durable places of lines.
    ///
    /// What is remembered of a line is newer, and stays.
    package mutating func learn(_ pasts: [ThrottlePast], at now: Timestamp) {
        for past in pasts where lines[past.line] == nil {
            let open = unrecorded[past.line] ?? [:]
            let places = past.places.filter { open[$0.deliveryID] == nil } + open.values
            lines[past.line] = Line(
                // A place in the future comes from a clock that was set back since. All that is
                // known is that it is past.
                sent: places.map { ($0.deliveryID, min($0.takenAt, now)) }
                    .sorted { $0.1 < $1.1 },
                isWaitedFor: past.isWaitedFor)
        }
    }

    /// Returns the place that `delivery` took, if it is not durable yet.
    package func unrecordedPlace(of delivery: Delivery) -> ThrottlePlace? {
        unrecorded.isEmpty ? nil : unrecorded[ThrottledLine(delivery)]?[delivery.id]
    }

    /// Notes that places are durable.
    package mutating func recorded(_ places: [ThrottlePlace]) {
        for place in places {
            unrecorded[place.line]?[place.deliveryID] = nil
            if unrecorded[place.line]?.isEmpty == true { unrecorded[place.line] = nil }
        }
    }

    // MARK: Places

    /// Takes a place for `delivery`, which is about to be sent.
    ///
    /// If there is none, returns the time when there will be one.
    ///
    /// A delivery that has a place takes no other, however often it is sent. A delivery that was
    /// sent once (`hasGone`) may always be sent again, and counts.
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

    /// Moves all times back by `step`, by which the clock was set back.
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
