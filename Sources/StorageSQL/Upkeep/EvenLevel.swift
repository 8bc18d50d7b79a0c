/// How much each of several may keep of what they have, so that all together have no more than a
/// bound: who has less than others keeps it all, and the rest have as much as each other.
struct EvenLevel: Sendable, Hashable {
    /// What each may have; `nil` if all may keep all.
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
