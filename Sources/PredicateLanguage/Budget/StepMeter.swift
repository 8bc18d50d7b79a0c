import RelayModel

/// Counts the steps of one evaluation, and ends it where they are too many.
///
/// What takes time that grows with what somebody wrote is charged before it is done, in the order
/// in which the reference evaluation goes. So the count is a function of the condition and the
/// record alone, whoever evaluates, and wherever (docs/decisions/0036-a-budget-of-steps.md).
/// A step is about 2 ns; what is charged errs on the high side.
final class StepMeter {
    /// The steps so far; beyond the limit once it was refused to go on.
    private(set) var taken = 0
    private let limit: Int

    /// A part of an expression.
    static let part = 8
    /// A comparison, without what its sides hold.
    static let comparison = 24
    /// A value that is passed by.
    static let value = 16
    /// A value that is looked at to see how much there is of it.
    static let looking = 4
    /// A value that is put in order among others.
    static let ordering = 128
    /// An element that a SUBQUERY binds.
    static let binding = 48
    /// Values inside each other; what a record or a text of ours can hold is flatter.
    static let maximumDepth = 512

    init(limit: Int = Limits.maximumEvaluationSteps) {
        self.limit = limit
    }

    /// Counts steps that are about to be taken.
    ///
    /// - Throws: ``EvaluationError/budgetExceeded`` if fewer are left.
    func charge(_ steps: Int) throws(EvaluationError) {
        let (sum, isTooMuch) = taken.addingReportingOverflow(steps)
        taken = isTooMuch ? .max : sum
        if taken > limit { throw .budgetExceeded }
    }

    /// How much there is of `value`; looking is charged too.
    func extent(of value: FieldValue) throws(EvaluationError) -> Extent {
        var extent = Extent()
        try measure(value, 0, &extent)
        try charge(extent.looking)
        return extent
    }

    /// The same for all of `values`.
    func extent(of values: [FieldValue]) throws(EvaluationError) -> Extent {
        var extent = Extent()
        for value in values { try measure(value, 1, &extent) }
        try charge(extent.looking)
        return extent
    }

    private func measure(
        _ value: FieldValue, _ depth: Int, _ extent: inout Extent
    ) throws(EvaluationError) {
        extent.values += 1
        // A list may stand in itself many times over, and would take forever to walk.
        guard depth <= Self.maximumDepth, extent.looking <= limit else {
            throw .budgetExceeded
        }
        switch value {
        case .string(let text): extent.add(text)
        case .bytes(let bytes): extent.bytes += bytes.count
        case .list(let values):
            extent.collections += 1
            for value in values { try measure(value, depth + 1, &extent) }
        case .set(let values):
            extent.collections += 1
            for value in values { try measure(value, depth + 1, &extent) }
        case .map(let members):
            extent.collections += 1
            for (name, value) in members {
                extent.bytes += name.utf8.count
                try measure(value, depth + 1, &extent)
            }
        case .null, .bool, .integer, .double, .timestamp, .reference, .location, .uuid,
            .objectID:
            return
        }
    }
}

/// How much there is of a value: what it takes to read it is a matter of this.
struct Extent {
    /// Itself and all values inside it.
    var values = 0
    /// Those of them that have values inside.
    var collections = 0
    /// Bytes of texts and data.
    var bytes = 0
    /// Bytes of texts beyond ASCII, which may have to be composed and folded.
    var foreign = 0

    /// The steps of finding this out.
    var looking: Int { values * StepMeter.looking + bytes / 32 }
    /// The steps of reading it once.
    var reading: Int { values * StepMeter.value + bytes + foreign * 6 }

    /// How many texts beyond ASCII there are at the most: each has two bytes there.
    var foreignTexts: Int { min(values, foreign / 2) }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { units in
            bytes += units.count
            foreign += unsafe units.reduce(0) { $0 + Int($1 >> 7) }
        }
    }
}

extension StepMeter {
    /// Charges for arithmetic, sets, functions and casts, which read what they are given a few
    /// times.
    func charge(calculating values: [FieldValue]) throws(EvaluationError) {
        for value in values where !value.isSmall {
            try charge(try extent(of: value).reading * 4)
        }
        try charge(values.count * Self.value)
    }
}

extension FieldValue {
    /// Whether reading it takes no longer than a comparison does anyway.
    var isSmall: Bool {
        switch self {
        case .string(let text): text.utf8.count <= 16
        case .bytes(let bytes): bytes.count <= 64
        case .list, .set, .map: false
        default: true
        }
    }
}
