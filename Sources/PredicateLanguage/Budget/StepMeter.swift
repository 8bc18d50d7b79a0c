import RelayModel

/// Counts the steps of one evaluation, and ends it when there are too many.
///
/// Work that grows with the size of user input is charged before it is done, in the order of the
/// reference evaluation. So the count is a function of the condition and the record alone,
/// whichever evaluator runs, on whichever machine (docs/decisions/0036-a-budget-of-steps.md). A
/// step is about 2 ns. Charges err on the high side.
final class StepMeter {
    /// The steps charged so far.
    ///
    /// It is beyond the limit once a charge has been refused.
    private(set) var taken = 0
    private let limit: Int

    /// Steps for a part of an expression.
    static let part = 8
    /// Steps for a comparison, without the contents of its sides.
    static let comparison = 24
    /// Steps to read one value.
    static let value = 16
    /// Steps to look at a value in order to measure it.
    static let looking = 4
    /// Steps to sort a value among others.
    static let ordering = 128
    /// Steps to look a value up among others by its hash.
    static let hashing = 128
    /// Steps to find an element of a set or dictionary in another one, beside reading it.
    static let member = 32
    /// Steps to compose or fold a non-ASCII text, however short it is: a quarter of a microsecond,
    /// and a whole one if the text has combining marks.
    static let folding = 128
    /// Steps to compose or fold a byte of a text with characters that depend on their neighbours.
    static let composing = 64
    /// Steps for an element that a SUBQUERY binds.
    static let binding = 48
    /// The maximum nesting depth of values.
    ///
    /// A record and a condition's text are always flatter.
    static let maximumDepth = 512

    init(limit: Int = Limits.maximumEvaluationSteps) {
        self.limit = limit
    }

    /// Charges for steps that are about to be taken.
    ///
    /// - Throws: ``EvaluationError/budgetExceeded`` if fewer are left.
    func charge(_ steps: Int) throws(EvaluationError) {
        let (sum, isTooMuch) = taken.addingReportingOverflow(steps)
        taken = isTooMuch ? .max : sum
        if taken > limit { throw .budgetExceeded }
    }

    /// Measures the extent of `value`, and charges for measuring it.
    func extent(of value: FieldValue) throws(EvaluationError) -> Extent {
        var extent = Extent()
        try measure(value, 0, &extent)
        try charge(extent.looking)
        return extent
    }

    /// Measures the combined extent of `values`, and charges for measuring it.
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
        // A list can contain the same list many times over, and would then take forever to walk.
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
            extent.hashed += values.count
            for value in values { try measure(value, depth + 1, &extent) }
        case .map(let members):
            extent.collections += 1
            extent.hashed += members.count
            for (name, value) in members {
                extent.add(name)
                try measure(value, depth + 1, &extent)
            }
        case .null, .bool, .integer, .double, .timestamp, .reference, .location, .uuid,
            .objectID:
            return
        }
    }
}

/// The size of a value, which determines the cost of reading it.
struct Extent {
    /// The number of values: the value itself and all values inside it.
    var values = 0
    /// The number of those values that contain others.
    var collections = 0
    /// Bytes of texts and binary data.
    var bytes = 0
    /// Bytes of non-ASCII characters in texts, which may have to be composed and folded.
    var foreign = 0
    /// The number of elements of sets and dictionaries, which are found by their hashes.
    var hashed = 0

    /// The steps to measure the value.
    var looking: Int { values * StepMeter.looking + bytes / 32 }
    /// The steps to read the value once.
    var reading: Int {
        values * StepMeter.value + bytes + foreign * 6 + hashed * StepMeter.member
    }

    /// The maximum number of non-ASCII texts: each contains at least two such bytes.
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
    /// Charges for arithmetic, set operations, functions and casts, which read their operands a few
    /// times.
    func charge(calculating values: [FieldValue]) throws(EvaluationError) {
        for value in values where !value.isSmall {
            try charge(try extent(of: value).reading * 4)
        }
        try charge(values.count * Self.value)
    }

    /// Charges for finding equal values by their hashes, in order to count them or to take each
    /// once.
    ///
    /// Texts are composed for that, and the values inside lists are hashed too.
    func charge(hashing values: [FieldValue]) throws(EvaluationError) {
        let extent = try extent(of: values)
        try charge(extent.values * Self.hashing + extent.foreignTexts * Self.folding)
        for value in values {
            try charge(try tangledBytes(of: value, []) * Self.composing)
        }
    }

    /// Returns the number of bytes of the texts in `value` that cannot be composed or folded
    /// character by character, and charges for finding out.
    func tangledBytes(
        of value: FieldValue, _ options: RecordPredicate.TextOptions
    ) throws(EvaluationError) -> Int {
        var bytes = 0
        switch value {
        case .string(let text):
            guard !text.utf8Span.isKnownASCII else { return 0 }
            try charge(text.utf8.count)
            return SingleFolding.canFold(text, options) ? 0 : text.utf8.count
        case .list(let values):
            for value in values { bytes += try tangledBytes(of: value, options) }
        case .set(let values):
            for value in values { bytes += try tangledBytes(of: value, options) }
        case .map(let members):
            for value in members.values { bytes += try tangledBytes(of: value, options) }
        default: return 0
        }
        return bytes
    }
}

extension FieldValue {
    /// Whether reading the value takes no longer than the fixed cost of a comparison.
    var isSmall: Bool {
        switch self {
        case .string(let text): text.utf8.count <= 16
        case .bytes(let bytes): bytes.count <= 64
        case .list, .set, .map: false
        default: true
        }
    }
}
