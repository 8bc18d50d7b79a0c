import RelayModel

/// The result of a step without the evaluator.
enum ProgramVerdict {
    case yes
    case no
    /// The step does not know values of these kinds, so the evaluator must decide.
    case unsure

    @inline(__always)
    init(_ holds: Bool) {
        self = holds ? .yes : .no
    }
}

/// One comparison of a program, with the steps that follow it.
///
/// A step contains no references, so running a program needs no reference counting.
struct ProgramStep: Sendable {
    /// The targets at which a program ends, for each outcome.
    static let end = (holds: Int32(-1), fails: Int32(-2))

    /// The test of the value.
    var test: ProgramTest
    /// How the test applies to a list.
    var spread: ProgramSpread
    /// Whether a value that is not a collection is tested directly.
    var takesScalars: Bool { place >= 0 && (spread == .whole || spread == .anyOrItself) }
    /// The place of the value in the layout.
    ///
    /// It is negative if the evaluator reads the values itself.
    var place: Int32
    /// The next step if the comparison holds.
    var onTrue: Int32
    /// The next step if the comparison does not hold.
    var onFalse: Int32
    /// The index of the comparison.
    var comparison: Int32
}

/// The test of a value.
///
/// Numbers and dates are stored here; other constants are stored in the program, and the test has
/// their index.
enum ProgramTest: Sendable {
    /// No test: the evaluator decides.
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

/// The elements of a list that must pass a test.
enum ProgramSpread: Sendable {
    /// The list is tested as a whole.
    case whole
    /// Any element, or the value itself if it is not a list (Realm without a quantifier).
    case anyOrItself
    case any
    case all
    case none
}

/// The results of comparing two values that satisfy a comparison.
struct ProgramOrder: OptionSet, Sendable {
    let rawValue: UInt8

    static let less = ProgramOrder(rawValue: 1)
    static let equal = ProgramOrder(rawValue: 2)
    static let greater = ProgramOrder(rawValue: 4)
    /// One of the two values is NaN.
    static let unordered = ProgramOrder(rawValue: 8)
    /// The value is nil, and the constant is not.
    static let missing = ProgramOrder(rawValue: 16)
    /// Not a result but a rule: booleans count as the numbers 1 and 0.
    static let countsBooleans = ProgramOrder(rawValue: 32)

    /// Creates the results that satisfy a comparator, or returns `nil` if it is not one of the six
    /// comparators of equality and order.
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

    /// The results that satisfy the comparison with its sides exchanged.
    var flipped: ProgramOrder {
        var flipped = subtracting([.less, .greater])
        if contains(.less) { flipped.insert(.greater) }
        if contains(.greater) { flipped.insert(.less) }
        return flipped
    }

    /// Whether the comparison is for equality or inequality.
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
