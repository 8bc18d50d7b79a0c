extension PostgresSession {
    /// Creates sessions whose waits are measured by a clock that keeps running while the machine
    /// sleeps.
    ///
    /// They block threads of their own, as libpq does, and no task.
    init(place: PostgresPlace, name: String) {
        let began = ContinuousClock.now
        self.init(place: place, watch: { began.duration(to: .now) }, name: name)
    }
}
