import RelayModel

/// What a step can say without the evaluator.
enum ProgramVerdict {
    case yes
    case no
    /// The values are of kinds that the step does not know: the evaluator judges.
    case unsure

    @inline(__always)
    init(_ holds: Bool) {
        self = holds ? .yes : .no
    }
}

/// One comparison of a program, and where it goes on.
///
/// A step holds no reference, so that nothing is counted while a program runs.
struct ProgramStep: Sendable {
    /// Where a program ends with an outcome.
    static let end = (holds: Int32(-1), fails: Int32(-2))

    /// What is asked of the value.
    var test: ProgramTest
    /// How a list is taken.
    var spread: ProgramSpread
    /// Whether a value that is no collection is tested as it is.
    var takesScalars: Bool { place >= 0 && (spread == .whole || spread == .anyOrItself) }
    /// The place of the value in the layout; negative if the evaluator finds the values itself.
    var place: Int32
    /// The step that follows if the comparison holds.
    var onTrue: Int32
    /// The step that follows if it does not.
    var onFalse: Int32
    /// Which comparison it is.
    var comparison: Int32
}

/// What a step asks of a value; numbers are here, all else is in the program under an index.
enum ProgramTest: Sendable {
    /// Nothing: the evaluator judges.
    case evaluated
    case integer(Int64, ProgramOrder)
    case double(Double, ProgramOrder)
    case integers(Int64, Int64)
    case doubles(Double, Double)
    case timestamp(Timestamp, ProgramOrder)
    case empty(ProgramOrder)
    case plainText(Int32, ProgramOrder)
    case text(Int32, ProgramOrder)
    case needle(Int32, TextNeedle.Place)
    case members(Int32)
    case pattern(Int32)
    case formula(Int32, ProgramOrder)
}

/// Which elements of a list must pass.
enum ProgramSpread: Sendable {
    /// A list is not taken apart.
    case whole
    /// Any; what is no list stands for itself (Realm without a quantifier).
    case anyOrItself
    case any
    case all
    case none
}

/// Which results of comparing two values satisfy a comparison.
struct ProgramOrder: OptionSet, Sendable {
    let rawValue: UInt8

    static let less = ProgramOrder(rawValue: 1)
    static let equal = ProgramOrder(rawValue: 2)
    static let greater = ProgramOrder(rawValue: 4)
    /// One of the two is NaN.
    static let unordered = ProgramOrder(rawValue: 8)
    /// The value is nil, and what it is compared with is not.
    static let missing = ProgramOrder(rawValue: 16)
    /// Not a result but a rule: booleans are the numbers 1 and 0.
    static let countsBooleans = ProgramOrder(rawValue: 32)

    /// What satisfies a comparator; `nil` if it is none of the six.
    init?(_ comparator: RecordPredicate.Comparator, _ rules: RecordPredicate.RuleSet) {
        switch comparator {
        case .equal: self = .equal
        case .notEqual: self = [.less, .greater, .unordered, .missing]
        case .less: self = .less
        case .lessOrEqual: self = [.less, .equal]
        case .greater: self = .greater
        case .greaterOrEqual: self = [.greater, .equal]
        default: return nil
        }
        if rules == .apple { insert(.countsBooleans) }
    }

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The same with the sides exchanged.
    var flipped: ProgramOrder {
        var flipped = subtracting([.less, .greater])
        if contains(.less) { flipped.insert(.greater) }
        if contains(.greater) { flipped.insert(.less) }
        return flipped
    }

    /// Whether only equality is asked for, or only its contrary.
    var isEquality: Bool { contains(.less) == contains(.greater) }

    @inline(__always)
    func accepts<Value: Comparable>(_ left: Value, _ right: Value) -> ProgramVerdict {
        let result: ProgramOrder =
            left < right ? .less : left == right ? .equal : left > right ? .greater : .unordered
        return ProgramVerdict(!isDisjoint(with: result))
    }

    @inline(__always)
    func accepts(_ order: Int?) -> ProgramVerdict {
        guard let order else { return ProgramVerdict(contains(.unordered)) }
        let result: ProgramOrder = order < 0 ? .less : order == 0 ? .equal : .greater
        return ProgramVerdict(!isDisjoint(with: result))
    }

    @inline(__always)
    var onMissing: ProgramVerdict { ProgramVerdict(contains(.missing)) }
}
