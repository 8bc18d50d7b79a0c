/// When a server is to plan anew what was prepared on a connection: a pure decision.
///
/// It keeps a plan until it has looked at a table anew (ANALYZE), which takes a minute and more.
/// Of indexes of a table that is empty each is as good as another, also one that has to be read
/// whole: a plan that was made then is a bad one as soon as the table has grown. A new store grows
/// fast, so that the first plans are kept for a moment only.
struct PlanAge: Sendable {
    /// How long plans are kept at first: twice as long each time, up to the longest.
    private static let first = Duration.seconds(1)
    private static let longest = Duration.seconds(60)

    private var due: Duration
    private var pause = PlanAge.first

    /// Of a connection that is made at a moment.
    init(at moment: Duration) { due = moment + Self.first }

    /// Whether plans are too old at a moment; whoever is told so has them made anew.
    mutating func isOver(at moment: Duration) -> Bool {
        guard moment >= due else { return false }
        pause = min(pause * 2, Self.longest)
        due = moment + pause
        return true
    }
}
