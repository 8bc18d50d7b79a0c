import PredicateLanguage
import RegularExpressions
import RelayModel

/// A part of a predicate that rows cannot judge, prepared for the reference evaluator.
struct ReferenceRow: Sendable {
    /// The part's canonical text, which identifies it.
    let text: [UInt8]
    /// The prepared part; `nil` if preparing it failed, so that every evaluation is an error.
    let predicate: PreparedPredicate?
    /// The fields that the part reads; `nil` if they cannot be told from the text.
    let fields: [String]?
    /// The system fields among them, which may be unknown even if the image is full.
    private let systemFields: [String]
    /// The number of programs that refer to the part.
    var uses = 0
    /// The approximate memory in bytes.
    let bytes: Int

    /// The placeholder for a part to which no program refers any more.
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

    /// Returns the memory of a part in bytes, rather too high than too low.
    static func room(of node: RecordPredicate.Node) -> Int {
        let predicate = RecordPredicate(node)
        return room(of: predicate.root, textBytes: predicate.canonicalText.utf8.count)
    }

    /// The list of the rows and the table of their texts may have a capacity of twice their
    /// contents.
    private static func room(of node: RecordPredicate.Node, textBytes: Int) -> Int {
        node.preparedRoom + HeapRoom.array(textBytes, 1) + 2 * MemoryLayout<Self>.stride + 128
    }

    /// Returns the answer of the part for a change, and adds the steps that it took to `steps`.
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

    /// Shorter evaluations, of less than a tenth of a millisecond, are not worth two readings of
    /// the clock.
    private static let leastMeasured = 50_000

    /// Returns whether the part reads a field that a partial image lacks, or an unknown system
    /// field.
    private func isUnknown(in values: RecordFields, isPartial: Bool) -> Bool {
        if systemFields.contains(where: { values[$0] == nil }) { return true }
        guard isPartial else { return false }
        return !(fields?.allSatisfy { values[$0] != nil } ?? false)
    }

    /// Runs an evaluation and adds its duration in the thread's own time as steps, or its counted
    /// steps if that time stands still.
    ///
    /// The measured time affects only how much one change may take in total, which is decided once
    /// and recorded. The outcome of an evaluation depends only on its counted steps, which assume
    /// the worst case.
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

    /// A metered part is always a whole predicate; on a partial image it is judged by the known
    /// fields.
    private func answer(
        ofKnown predicate: PreparedPredicate, _ values: RecordFields, for change: DecodedChange,
        steps: inout Int
    ) -> RowAnswer {
        // The cost of reading the predicate and preparing it again.
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
