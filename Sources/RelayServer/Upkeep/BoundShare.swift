import Storage

/// What one container may have of a bound that all share.
///
/// Nobody has more than what is left of it: so there is always something left for who has little,
/// however many the others are (Choudhury and Hahne 1998, for buffers of switches). With two
/// containers, one comes to half.
struct BoundShare: Sendable, Hashable {
    /// The bound.
    let bound: IntakeBound
    /// How much all have.
    let amount: Int
    /// How much all may have; 0 is no bound.
    let most: Int

    init(_ bound: IntakeBound, amount: Int, most: Int) {
        self.bound = bound
        self.amount = amount
        self.most = most
    }

    /// Whether one container could have more than what is left.
    var isScarce: Bool { most > 0 && amount > most / 2 }

    /// Whether a container that has so much may have no more.
    func isUsedUp(by own: Int) -> Bool { isScarce && own > most - amount }
}
