/// The level up to which several parties may keep what they have, so that their total stays within
/// a bound: those with less keep everything, and the others keep equally much.
struct EvenLevel: Sendable, Hashable {
    /// The maximum that each may keep; `nil` if all may keep everything.
    let level: Int?

    init(of shares: [Int], within bound: Int) {
        var rest = bound
        var others = shares.count
        for share in shares.sorted() {
            guard share <= rest / others else {
                level = max(0, rest / others)
                return
            }
            rest -= share
            others -= 1
        }
        level = nil
    }
}
