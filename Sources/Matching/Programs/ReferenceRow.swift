import PredicateLanguage
import RegularExpressions
import RelayModel

/// A part of a predicate that rows cannot judge, kept as the reference evaluator wants it.
struct ReferenceRow: Sendable {
    /// The part's canonical text, by which it is known.
    let text: [UInt8]
    /// The part made ready; `nil` if that failed, and then it never has an answer.
    let predicate: PreparedPredicate?
    /// The fields it reads; `nil` if that cannot be told from the text.
    let fields: [String]?
    /// Those of them that are system fields, which may be unknown though the image is whole.
    private let systemFields: [String]
    /// How many programs name it.
    var uses = 0
    /// Bytes held, about.
    let bytes: Int

    /// The place of a part that nobody names any more.
    static let unused = ReferenceRow(.everyRecord, text: [])

    init(_ source: RecordPredicate, text: [UInt8]) {
        self.text = text
        bytes =
            text.isEmpty
            ? MemoryLayout<Self>.stride : Self.room(of: source.root, textBytes: text.count)
        var fields: Set<String> = []
        self.fields = source.root.collectFields(&fields) ? fields.sorted() : nil
        systemFields = fields.filter { SystemField(named: $0) != nil }.sorted()
        do throws(PredicateError) {
            predicate = try PreparedPredicate(checked: source)
        } catch {
            predicate = nil
        }
    }

    /// Bytes that a part takes, rather too many than too few.
    static func room(of node: RecordPredicate.Node) -> Int {
        let predicate = RecordPredicate(node)
        return room(of: predicate.root, textBytes: predicate.canonicalText.utf8.count)
    }

    /// The list of the rows, and the table of their texts, may have grown to twice what they hold.
    private static func room(of node: RecordPredicate.Node, textBytes: Int) -> Int {
        node.preparedRoom + HeapRoom.array(textBytes, 1) + 2 * MemoryLayout<Self>.stride + 128
    }

    /// What the part says of a change; adds to `steps` what that took.
    func answer(for change: DecodedChange, steps: inout Int) -> RowAnswer {
        guard let predicate else { return .error }
        let values =
            systemFields.isEmpty ? change.fields : change.judgedFields ?? change.fields
        if isUnknown(in: values, isPartial: change.isPartial) {
            return predicate.weight.isMetered
                ? answer(ofKnown: predicate, values, for: change, steps: &steps) : .unknown
        }
        guard !predicate.weight.isMetered else {
            return measured(by: change, steps: &steps) { steps in
                RowAnswer(predicate.evaluate(on: values, now: change.now, steps: &steps))
            }
        }
        let passes = predicate.weight.passes
        let estimate = predicate.weight.steps(reading: passes > 0 ? change.reading : 0)
        if estimate < Self.leastMeasured {
            steps += estimate
            return RowAnswer(predicate.evaluate(on: values, now: change.now))
        }
        // Folding a long text may take much longer than reading it.
        return measured(by: change, steps: &steps) { steps in
            steps = estimate
            return RowAnswer(predicate.evaluate(on: values, now: change.now))
        }
    }

    /// Evaluations that take less, a tenth of a millisecond, are not worth two looks at the clock.
    private static let leastMeasured = 50_000

    /// Whether it reads what a partial image lacks, or a system field that nobody knows.
    private func isUnknown(in values: RecordFields, isPartial: Bool) -> Bool {
        if systemFields.contains(where: { values[$0] == nil }) { return true }
        guard isPartial else { return false }
        return !(fields?.allSatisfy { values[$0] != nil } ?? false)
    }

    /// Adds what an evaluation took by the thread's own time, or its steps if that stood still.
    ///
    /// Only how many of them one change may take depends on it, which is decided once and kept;
    /// an evaluation's own answer depends on its steps alone, which are reckoned for the worst.
    private func measured(
        by change: DecodedChange, steps: inout Int, _ evaluate: (inout Int) -> RowAnswer
    ) -> RowAnswer {
        let began = change.threadTime()
        var counted = 0
        let answer = evaluate(&counted)
        let nanoseconds = change.threadTime() &- began
        steps += nanoseconds > 0 ? Int(nanoseconds / 2) : counted
        return answer
    }

    /// What is metered is a whole predicate: of a partial image it is judged by what is known.
    private func answer(
        ofKnown predicate: PreparedPredicate, _ values: RecordFields, for change: DecodedChange,
        steps: inout Int
    ) -> RowAnswer {
        // Reading the predicate and making it ready anew.
        steps += text.count * 64
        let unknown = Set(systemFields.filter { values[$0] == nil })
        let known =
            change.isPartial
            ? predicate.predicate.knowing(values.keys) : predicate.predicate.lacking(unknown)
        do throws(PredicateError) {
            let prepared = try PreparedPredicate(checked: known)
            return measured(by: change, steps: &steps) { steps in
                RowAnswer(prepared.evaluate(on: values, now: change.now, steps: &steps))
            }
        } catch {
            return .error
        }
    }
}

extension RowAnswer {
    init(_ outcome: PredicateOutcome) {
        switch outcome {
        case .true: self = .holds
        case .false: self = .fails
        case .error: self = .error
        }
    }
}
