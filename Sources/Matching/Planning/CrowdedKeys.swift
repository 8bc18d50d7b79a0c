/// How often keys were hit since so much was filed under them that it counts.
///
/// What changes showed before says nothing of them: a change is looked up only by what somebody
/// asks for, so that a key which nobody had filed under was never hit, however common it is.
struct CrowdedKeys {
    private struct Start {
        let plan: Int
        let sight: Selectivity.Sight
    }

    /// Where the count began, by the keys' hashes.
    private var starts: [UInt32: Start] = [:]

    /// Keys remembered; of those beyond them all that was ever seen counts.
    private static let most = 1 << 14

    /// The share of a plan's changes that hit a crowded key since it is one; `nil` until enough
    /// were seen.
    mutating func share(
        of hash: UInt32, plan: Int, _ selectivity: borrowing Selectivity
    ) -> Double? {
        let now = selectivity.sight(of: hash, plan: plan)
        guard let start = starts[hash], start.plan == plan else {
            guard starts.count < Self.most else {
                return selectivity.observed(hash, plan: plan)
            }
            starts[hash] = Start(plan: plan, sight: now)
            return nil
        }
        let then = start.sight.faded(to: now.halvings)
        guard now.samples >= then.samples + Selectivity.enough else { return nil }
        let hits = Double(now.hits) - Double(then.hits)
        return min(max(hits + 0.25, 0.25) / Double(now.samples - then.samples), 1)
    }
}
