/// A running measurement of elapsed time on any clock.
struct Stopwatch: Sendable {
    let elapsed: @Sendable () -> Duration
}

extension Clock where Duration == Swift.Duration {
    func measureStart() -> Stopwatch {
        let start = now
        return Stopwatch { start.duration(to: self.now) }
    }
}
