/// Counts how often keys were hit since they became crowded.
///
/// Earlier samples say nothing about such a key: changes are looked up only by keys that some
/// subscription uses, so an unused key was never hit, however common its value is.
struct CrowdedKeys {
    private struct Start {
        let plan: Int
        let sight: Selectivity.Sight
    }

    /// The samples at the time when each key became crowded, by the keys' hashes.
    private var starts: [UInt32: Start] = [:]

    /// The maximum number of keys; for further keys, all samples are used.
    private static let most = 1 << 14

    /// Returns the share of a plan's changes that hit a key since it became crowded; `nil` until
    /// there are enough samples.
    mutating func share(
        of hash: UInt32, plan: Int, _ selectivity: borrowing Selectivity
    ) -> Double? {
        let now = selectivity.sight(of: hash, plan: plan)
        guard let start = starts[hash], start.plan == plan else {
            guard starts.count < Self.most else {
                return selectivity.expected(hash, plan: plan)
            }
            starts[hash] = Start(plan: plan, sight: now)
            return nil
        }
        let then = start.sight.faded(to: now.halvings)
        guard now.samples >= then.samples + Selectivity.enough else { return nil }
        return Selectivity.expected(
            hits: Int(now.hits) - Int(then.hits), in: now.samples - then.samples)
    }
}
