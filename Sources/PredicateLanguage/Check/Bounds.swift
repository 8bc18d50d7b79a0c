/// A lower and an upper bound on a value, each of them optional.
struct Bounds<Value: Comparable> {
    private var least: (value: Value, isOpen: Bool)?
    private var most: (value: Value, isOpen: Bool)?

    /// Whether there is no bound.
    var isFree: Bool { least == nil && most == nil }

    /// Whether no value lies within the bounds.
    var leaveNothing: Bool {
        guard let least, let most else { return false }
        if least.value > most.value { return true }
        return least.value == most.value && (least.isOpen || most.isOpen)
    }

    /// Returns the only value that lies within these bounds and `others`.
    ///
    /// Returns `nil` if there is no such single value, or if these bounds are free.
    func only(within others: Self) -> Value? {
        guard !isFree else { return nil }
        let all = narrowed(by: others)
        guard let least = all.least, let most = all.most, least.value == most.value,
            !least.isOpen, !most.isOpen
        else { return nil }
        return least.value
    }

    /// Returns whether these bounds are not free, and no value lies within both them and `others`.
    func leaveNothing(within others: Self) -> Bool {
        !isFree && narrowed(by: others).leaveNothing
    }

    private func narrowed(by others: Self) -> Self {
        var all = self
        if let most = others.most { all.narrow(.below, most.value, most.isOpen) }
        if let least = others.least { all.narrow(.above, least.value, least.isOpen) }
        return all
    }

    /// Restricts the bounds to the values on one side of `bound`, and to `bound` itself unless it
    /// is open.
    mutating func narrow(_ side: BoundSide, _ bound: Value, _ isOpen: Bool) {
        switch side {
        case .below:
            if let most, (most.value, most.isOpen ? 0 : 1) < (bound, isOpen ? 0 : 1) { return }
            most = (bound, isOpen)
        case .above:
            if let least, (least.value, least.isOpen ? 1 : 0) > (bound, isOpen ? 1 : 0) { return }
            least = (bound, isOpen)
        }
    }

    /// Returns whether `value` lies within the bounds.
    func have(_ value: Value) -> Bool {
        if let least, value < least.value || value == least.value && least.isOpen { return false }
        if let most, value > most.value || value == most.value && most.isOpen { return false }
        return true
    }
}

/// The side of a bound on which values lie.
enum BoundSide {
    case below, above

    /// Returns the equivalent bound for whole numbers, which is always closed.
    func whole(_ bound: Double, _ isOpen: Bool) -> Double {
        switch self {
        case .below: isOpen ? bound.rounded(.up) - 1 : bound.rounded(.down)
        case .above: isOpen ? bound.rounded(.down) + 1 : bound.rounded(.up)
        }
    }
}
