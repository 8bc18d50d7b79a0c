import Storage

/// The share of one container in a limit that all containers share.
///
/// No container may have more than what is left of the limit. So there is always room for a
/// container that has little, however many others there are (the dynamic thresholds of Choudhury
/// and Hahne 1998, for switch buffers). Of two containers, one can reach at most half.
struct BoundShare: Sendable, Hashable {
    /// The shared limit.
    let bound: IntakeBound
    /// The amount that all containers have.
    let amount: Int
    /// The maximum for all containers; 0 means no limit.
    let most: Int

    init(_ bound: IntakeBound, amount: Int, most: Int) {
        self.bound = bound
        self.amount = amount
        self.most = most
    }

    /// Whether any container could have more than what is left.
    var isScarce: Bool { most > 0 && amount > most / 2 }

    /// Returns whether a container that has `own` may have no more.
    func isUsedUp(by own: Int) -> Bool { isScarce && own > most - amount }
}
