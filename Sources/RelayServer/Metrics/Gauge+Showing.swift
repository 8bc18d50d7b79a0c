import Metrics

extension Gauge {
    /// Shows a number that others change at the same time: whoever shows it last shows what it is.
    ///
    /// A number that was read before could be shown after a later one, and would stay.
    func show(_ number: () -> Int) {
        var shown: Int
        repeat {
            shown = number()
            record(shown)
        } while number() != shown
    }
}
