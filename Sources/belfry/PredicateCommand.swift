import ArgumentParser
import FoundationEssentials
import Glibc
import PredicateLanguage
import RelayModel
import RelayServer

/// `belfry predicate`: tests conditions without a server.
struct PredicateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "predicate",
        abstract: "Check conditions, and evaluate them on records.",
        subcommands: [EvaluatePredicate.self, CheckPredicate.self])
}

/// The options that both subcommands share.
struct PredicateOptions: ParsableArguments {
    @Option(
        help:
            "nspredicate, rql, where, filterBy or ckquery (default: that of the line's member).",
        completion: .list(Word.all(PredicateDialect.self)), transform: Self.dialect)
    var dialect: PredicateDialect?

    @Flag(help: "Write nothing but JSON lines, even to a terminal.")
    var jsonl = false

    @Argument(help: "A condition; without it, JSON lines are read from the standard input.")
    var condition: String?

    @Option(help: "The arguments of the condition, as a JSON array.")
    var args: String?

    func validate() throws {
        guard condition != nil || args == nil else {
            throw ValidationError("--args needs a condition: lines have arguments of their own")
        }
    }

    private static func dialect(_ name: String) throws -> PredicateDialect {
        guard let dialect = PredicateDialect(rawValue: name) else {
            let names = PredicateDialect.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("\"\(name)\" is not a dialect; allowed are \(names).")
        }
        return dialect
    }
}

/// `belfry predicate evaluate`.
struct EvaluatePredicate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evaluate",
        abstract: "Evaluate conditions on records.",
        discussion: """
            Reads JSON lines {"predicate"|"query"|"where"|"filterBy": …, "args": […], \
            "vars": {…}, "record": {…} | "records": [{…}]} and writes one JSON line for each: \
            {"result": true|false}, {"count": n} or {"error": {"stage", "offset", "reason"}}.
            """)

    @OptionGroup var options: PredicateOptions

    @Flag(help: "Show the outcome of each comparison.")
    var trace = false

    @Option(help: "The record for a condition on the command line, as JSON.")
    var record: String?

    func validate() throws {
        guard options.condition != nil || record == nil else {
            throw ValidationError("--record needs a condition: lines have records of their own")
        }
    }

    func run() throws {
        let task: PredicateLine.Task = trace ? .trace : .evaluate
        try PredicateRun(options: options, task: task, record: record).run()
    }
}

/// `belfry predicate check`.
struct CheckPredicate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check conditions as they would be checked when saved.",
        discussion: """
            Reads the same JSON lines, optionally with a "schema", and writes for each \
            {"valid": true, "canonical": "…", "dialect": "…"} or the error.

            A Realm query is read as Realm reads any query; only --against shows that a \
            subscription may not have SORT or @max.

            With --against a condition is checked as if a subscription with it were saved in a \
            container of a running relay: by the container's schema, and by what its last changes \
            looked like.

              belfry predicate check --against iCloud.com.example.Art --record-type Artwork \
            'artist == "a-1"'
            """)

    @OptionGroup var options: PredicateOptions
    @OptionGroup var administration: AdministrationOptions

    @Option(help: "The container by whose schema and changes the condition is checked.")
    var against: String?

    @Option(
        name: .shortAndLong, help: "development or production.",
        completion: .list(["development", "production"]))
    var environment = "development"

    @Option(help: "The record type of the condition; needed with --against.")
    var recordType: String?

    @Option(
        help: "Which updates fire: matches, entered, left or stayed.",
        completion: .list(["matches", "entered", "left", "stayed"]))
    var firesWhen: String?

    func validate() throws {
        guard against != nil || recordType == nil && firesWhen == nil else {
            throw ValidationError("--record-type and --fires-when need --against")
        }
    }

    func run() async throws {
        guard let against else {
            return try PredicateRun(options: options, task: .check, record: nil).run()
        }
        guard let recordType, let condition = options.condition else {
            throw ValidationError("--against needs --record-type, and a condition")
        }
        var body: JSONObject = [
            "query": .object(try query(condition, on: recordType))
        ]
        body["firesWhen"] = firesWhen.map { .string($0) }
        let sent = JSONValue.object(body)
        try await administration.run { client in
            let answer = try await client.make(
                .checkSubscription, ["container": against, "environment": environment],
                body: sent)
            return CommandOutput(answer, .text(Self.text(answer, to: condition)))
        }
    }

    private func query(_ condition: String, on recordType: String) throws -> JSONObject {
        var query: JSONObject = ["recordType": .string(recordType)]
        switch options.dialect ?? .nspredicate {
        case .nspredicate, .ckquery: query["predicate"] = .string(condition)
        case .rql: query["rql"] = .string(condition)
        case .where: query["where"] = try JSONValue(typed: condition, as: "condition")
        case .filterBy: query["filterBy"] = try JSONValue(typed: condition, as: "condition")
        }
        if let args = options.args {
            let name = query["rql"] == nil ? "predicateArguments" : "rqlArguments"
            query[name] = try JSONValue(typed: args, as: "--args")
        }
        return query
    }

    private static func text(_ answer: JSONValue, to condition: String) -> String {
        var lines = [
            "valid: \(CommandOutput.shown(answer.member(["canonical"])))"
        ]
        guard case .array(let warnings)? = answer.member(["warnings"]) else {
            return lines[0]
        }
        for warning in warnings {
            lines.append(
                "warning: \(CommandOutput.shown(warning.member(["reason"])))")
            if let place = place(of: warning, in: condition) { lines.append("  at \(place)") }
            if let hint = warning.member(["hint"]) {
                lines.append("  hint: \(CommandOutput.shown(hint))")
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Returns the place of a warning and the text there; `nil` if it concerns the whole condition,
    /// or JSON.
    private static func place(of warning: JSONValue, in condition: String) -> String? {
        guard case .integer(let offset)? = warning.member(["offset"]),
            case .integer(let length)? = warning.member(["length"]), offset >= 0, length > 0
        else { return nil }
        let bytes = condition.utf8.dropFirst(Int(offset)).prefix(Int(length))
        return "byte \(offset): \(String(decoding: bytes, as: UTF8.self).prefix(100))"
    }
}

/// A run of either subcommand.
private struct PredicateRun {
    let options: PredicateOptions
    let task: PredicateLine.Task
    let record: String?

    func run() throws {
        if let condition = options.condition {
            try answer(condition)
        } else {
            try answerLines()
        }
    }

    /// Answers one condition from the command line.
    ///
    /// A refused condition makes the command fail.
    private func answer(_ condition: String) throws {
        let dialect = options.dialect ?? .nspredicate
        var object = JSONObject()
        switch dialect {
        case .nspredicate, .ckquery: object["predicate"] = .string(condition)
        case .rql: object["query"] = .string(condition)
        case .where: object["where"] = try JSONValue(typed: condition, as: "condition")
        case .filterBy: object["filterBy"] = try JSONValue(typed: condition, as: "condition")
        }
        if let args = options.args { object["args"] = try JSONValue(typed: args, as: "--args") }
        if let record { object["record"] = try JSONValue(typed: record, as: "--record") }
        let line = PredicateLine(dialect: dialect, task: task)
        let answer = line.answer(to: JSONValue.object(object).utf8, now: Self.now)
        print(options.jsonl ? JSONValue.object(answer.json).text : answer.text)
        if answer.isError { throw ExitCode.failure }
    }

    /// Answers every line of the standard input in order.
    ///
    /// A terminal gets text. A pipe gets JSON, and unless `--jsonl` is given, the text of errors
    /// also goes to the standard error.
    private func answerLines() throws {
        let line = PredicateLine(dialect: options.dialect, task: task)
        let wantsText = !options.jsonl && isatty(STDOUT_FILENO) == 1
        var lines = LineBuffer()
        var output: [UInt8] = []
        while true {
            let chunk = try StandardStreams.read()
            if chunk.isEmpty { lines.finish() } else { lines.append(chunk) }
            while let next = lines.next() {
                let answer = line.answer(to: next, now: Self.now)
                if wantsText {
                    output.append(contentsOf: answer.text.utf8)
                } else {
                    answer.json.write(to: &output)
                    if answer.isError, !options.jsonl {
                        try StandardStreams.write(Array((answer.text + "\n").utf8), .error)
                    }
                }
                output.append(UInt8(ascii: "\n"))
                if output.count >= StandardStreams.chunkBytes { try flush(&output) }
            }
            try flush(&output)
            if chunk.isEmpty { return }
        }
    }

    private func flush(_ output: inout [UInt8]) throws {
        try StandardStreams.write(output, .output)
        output.removeAll(keepingCapacity: true)
    }

    private static var now: Timestamp { World.real.now() }
}
