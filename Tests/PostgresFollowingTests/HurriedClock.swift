/// A clock on which a sleep of a second takes ten milliseconds.
struct HurriedClock: Clock {
    typealias Instant = ContinuousClock.Instant

    private static let haste = 100
    private let clock = ContinuousClock()
    private let start = ContinuousClock.now

    var now: Instant { start + (clock.now - start) * Self.haste }
    var minimumResolution: Duration { clock.minimumResolution * Self.haste }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await clock.sleep(for: (deadline - now) / Self.haste)
    }
}
