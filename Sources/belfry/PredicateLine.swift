import PredicateLanguage
import RegularExpressions
import RelayModel

/// Answers the lines of `belfry predicate`.
struct PredicateLine {
    /// What to do with the condition of a line.
    enum Task {
        case evaluate
        case trace
        case check
    }

    /// The answer to one line.
    struct Answer {
        /// The answer as JSON.
        var json: JSONObject
        /// The answer in readable form.
        var text: String
        /// Whether the condition was refused, or could not be evaluated.
        var isError = false
    }

    /// The dialect of every line; `nil` lets each line choose.
    let dialect: PredicateDialect?
    let task: Task
    /// The conditions of earlier lines.
    private let conditions = RecentConditions()

    init(dialect: PredicateDialect?, task: Task) {
        self.dialect = dialect
        self.task = task
    }

    /// Answers one line.
    func answer(to line: LineBuffer.Line, now: Timestamp?) -> Answer {
        switch line {
        case .whole(let bytes): answer(to: bytes, now: now)
        case .tooLong:
            refusal(
                PredicateError(
                    .parse, "the line is longer than \(LineBuffer.maximumLineBytes) bytes"), "")
        }
    }

    /// Answers one line of JSON.
    func answer(to bytes: [UInt8], now: Timestamp?) -> Answer {
        let json: JSONValue
        do throws(JSONSyntaxError) {
            json = try JSONValue(parsing: bytes)
        } catch {
            let place = SourceSpan(offset: error.utf8Offset, length: 0)
            let rest = bytes.dropFirst(error.utf8Offset).prefix(20)
            return refusal(
                PredicateError(
                    .parse, "the line is not JSON: \(error.reason)", at: place,
                    found: rest.isEmpty
                        ? "the end of the line" : "`\(String(decoding: rest, as: UTF8.self))`",
                    expected: "JSON"), "")
        }
        do throws(JSONContractError) {
            let input = try PredicateInput(json, dialect: dialect)
            return answer(to: input, now: now)
        } catch {
            return refusal(
                PredicateError(
                    .parse, error.reason, expected: Self.lineForm, path: error.path
                ).completed(in: json), "")
        }
    }

    private func answer(to input: PredicateInput, now: Timestamp?) -> Answer {
        do throws(PredicateError) {
            if input.dialect == .rql { return try answerRealm(input, now) }
            switch task {
            case .check: return try check(try predicate(of: input), input)
            case .evaluate, .trace:
                let prepared = try conditions.prepared(input) { () throws(PredicateError) in
                    try PreparedPredicate(try predicate(of: input))
                }
                return evaluate(prepared, input, now)
            }
        } catch {
            let placed = error.placed(in: input.source, dialect: input.dialect)
            return refusal(placed.completed(in: input.source), input.text)
        }
    }

    /// The form of a line, for error messages.
    private static let lineForm =
        #"{"predicate", "query", "where" or "filterBy": …, "args": […], "record": {…}}"#

    private func predicate(
        of input: PredicateInput
    ) throws(PredicateError) -> RecordPredicate {
        try RecordPredicate.parse(
            input.source, dialect: input.dialect, arguments: input.arguments,
            schema: input.schema)
    }

    private func check(
        _ predicate: RecordPredicate, _ input: PredicateInput
    ) throws(PredicateError) -> Answer {
        try predicate.check(schema: input.schema, variables: Set(input.variables.keys))
        return accepted(predicate, input)
    }

    /// Returns the answer to a valid condition.
    func accepted(_ predicate: RecordPredicate, _ input: PredicateInput) -> Answer {
        let canonical = predicate.canonicalText
        return Answer(
            json: [
                "valid": true, "canonical": .string(canonical),
                "dialect": .string(input.dialect.rawValue),
            ], text: "valid: \(canonical)")
    }

    /// Evaluates a condition on the records of a line.
    func evaluate(
        _ prepared: PreparedPredicate, _ input: PredicateInput, _ now: Timestamp?
    ) -> Answer {
        var count: Int64 = 0
        var traces: [EvaluationTrace] = []
        for record in input.records {
            let outcome: PredicateOutcome
            if task == .trace {
                let trace = prepared.trace(onValue: record, variables: input.variables, now: now)
                outcome = trace.outcome
                traces.append(trace)
            } else {
                outcome = prepared.evaluate(
                    onValue: record, variables: input.variables, now: now)
            }
            switch outcome {
            case .true: count += 1
            case .false: continue
            case .error(let error):
                let place = prepared.trace(
                    onValue: record, variables: input.variables, now: now
                ).comparisons.last { $0.outcome == outcome }?.comparison.span
                var answer = refusal(
                    PredicateError(.evaluate, error.reason, at: place ?? .none)
                        .completed(in: input.source), input.text)
                append(traces, to: &answer, input)
                return answer
            }
        }
        var answer =
            input.countsRecords
            ? Answer(json: ["count": .integer(count)], text: "\(count) of \(input.records.count)")
            : Answer(json: ["result": .bool(count == 1)], text: "\(count == 1)")
        append(traces, to: &answer, input)
        return answer
    }

    private func append(
        _ traces: [EvaluationTrace], to answer: inout Answer, _ input: PredicateInput
    ) {
        guard task == .trace else { return }
        answer.json["trace"] =
            input.countsRecords ? .array(traces.map(\.json)) : traces.first?.json ?? []
        let lines = traces.map(\.text).filter { !$0.isEmpty }
        answer.text = ([answer.text] + lines).joined(separator: "\n")
    }

    private func refusal(_ error: PredicateError, _ source: String) -> Answer {
        var json: JSONObject = ["error": .object(error.json)]
        if task == .check { json = ["valid": false, "error": .object(error.json)] }
        return Answer(json: json, text: error.rendered(in: source), isError: true)
    }
}

/// The prepared conditions of recent lines.
///
/// A stream often has the same condition for many records.
private final class RecentConditions {
    private struct Key: Hashable {
        let dialect: PredicateDialect
        /// The bytes of the condition.
        ///
        /// Some dialects distinguish two spellings of one character.
        let source: [UInt8]
        let arguments: [FieldValue]
    }

    /// The maximum number of conditions.
    ///
    /// All are dropped when it is reached.
    private static let capacity = 64

    /// The maximum length of a kept condition or argument, in bytes.
    private static let longestText = 1024

    private var prepared: [Key: PreparedPredicate] = [:]

    private static func isShort(_ value: FieldValue) -> Bool {
        switch value {
        case .string(let text): text.utf8.count <= longestText
        case .bytes, .map, .set: false
        case .list(let values):
            values.count <= 16
                && values.allSatisfy { if case .list = $0 { false } else { isShort($0) } }
        default: true
        }
    }

    /// Returns the condition of a line; a new one is prepared by `prepare`.
    ///
    /// A condition with a schema is not kept, because the schema may change its meaning. A long
    /// condition is not kept, because of its memory.
    func prepared(
        _ input: PredicateInput,
        _ prepare: () throws(PredicateError) -> PreparedPredicate
    ) throws(PredicateError) -> PreparedPredicate {
        guard input.schema == nil, case .string(let text) = input.source,
            text.utf8.count <= Self.longestText, input.arguments.allSatisfy(Self.isShort)
        else { return try prepare() }
        let key = Key(
            dialect: input.dialect, source: Array(text.utf8), arguments: input.arguments)
        if let known = prepared[key] { return known }
        let new = try prepare()
        if prepared.count >= Self.capacity { prepared.removeAll(keepingCapacity: true) }
        prepared[key] = new
        return new
    }
}

/// The contents of a line of `belfry predicate`.
struct PredicateInput {
    /// The dialect of the condition.
    let dialect: PredicateDialect
    /// The condition.
    let source: JSONValue
    /// The values of placeholders.
    let arguments: [FieldValue]
    /// The values of variables.
    let variables: RecordFields
    /// The records: one, unless the line has `records`.
    let records: [FieldValue]
    /// Whether the answer is the number of records that satisfy the condition.
    let countsRecords: Bool
    /// The schema of the record type, if the line has one.
    let schema: RecordSchema?

    /// The members that may hold the condition, and their dialects.
    private static let members: [(name: String, dialect: PredicateDialect)] = [
        ("predicate", .nspredicate), ("query", .rql), ("where", .where), ("filterBy", .filterBy),
    ]

    /// Parses a line.
    ///
    /// Unknown members are ignored, so that lines of published test suites can be used as they are.
    init(_ json: JSONValue, dialect: PredicateDialect?) throws(JSONContractError) {
        let reader = try JSONReader(json)
        let present = Self.members.filter { reader.object[$0.name] != nil }
        let preferred = present.first { $0.dialect == dialect } ?? present.first
        guard let preferred, let source = reader.object[preferred.name] else {
            throw JSONContractError(
                path: "predicate", reason: "one of predicate, query, where, filterBy is required")
        }
        self.source = source
        self.dialect = dialect ?? preferred.dialect
        var arguments: [FieldValue] = []
        for (index, value) in (try reader.array("args") ?? []).enumerated() {
            arguments.append(try FieldValue(argument: value, path: "args[\(index)]"))
        }
        self.arguments = arguments
        let variables = try reader.reader("vars")
        self.variables =
            if let variables {
                try FieldValue.fields(notation: variables.object, path: "vars")
            } else {
                [:]
            }
        let values = try reader.array("records")
        countsRecords = values != nil
        var records: [FieldValue] = []
        for (index, value) in (values ?? [reader.object["record"] ?? [:]]).enumerated() {
            let path = values == nil ? "record" : "records[\(index)]"
            records.append(try FieldValue(notation: value, path: path))
        }
        self.records = records
        schema =
            if let value = reader.value("schema") { try RecordSchema(json: value) } else { nil }
    }

    /// The condition as text, for messages.
    var text: String {
        if case .string(let text) = source { text } else { source.text }
    }
}
