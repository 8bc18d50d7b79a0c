import Metrics

extension Gauge {
    /// Records a number that other threads change at the same time, so that the last record is
    /// current.
    ///
    /// Without the repetition, a number that was read earlier could be recorded after a later one
    /// and would stay.
    func show(_ number: () -> Int) {
        var shown: Int
        repeat {
            shown = number()
            record(shown)
        } while number() != shown
    }
}
