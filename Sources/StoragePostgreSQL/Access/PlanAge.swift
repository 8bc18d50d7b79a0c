/// Decides when the server must replan the statements that were prepared on a connection.
///
/// A server keeps a plan until it has analysed a table (ANALYZE), which happens after a minute or
/// later. For an empty table all indexes look equally good, even one that must be read completely.
/// A plan that was made then is bad as soon as the table has grown. A new store grows fast, so the
/// first plans are kept only briefly.
struct PlanAge: Sendable {
    /// How long plans are kept at first; the time doubles each time, up to the longest.
    private static let first = Duration.seconds(1)
    private static let longest = Duration.seconds(60)

    private var due: Duration
    private var pause = PlanAge.first

    /// Creates the age of plans for a connection that is made at a moment.
    init(at moment: Duration) { due = moment + Self.first }

    /// Returns whether plans are too old at a moment; the caller must then discard them.
    mutating func isOver(at moment: Duration) -> Bool {
        guard moment >= due else { return false }
        pause = min(pause * 2, Self.longest)
        due = moment + pause
        return true
    }
}
