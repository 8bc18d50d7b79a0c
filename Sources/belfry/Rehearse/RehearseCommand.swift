import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// Shows what a subscription would have done.
struct RehearseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "Tell what a subscription would have done, before it is saved.",
        discussion: """
            The command finds a running belfry dev by itself. It judges the last changes of the \
            log as if the subscription had been there, and saves and sends nothing. Give a \
            condition with --record-type, a draft as subscriptions/modify takes it (--draft), or \
            the name of a saved subscription; if you give a name and a draft, the command compares \
            them.

              belfry rehearse --user carol --record-type Todo 'priority > 2'
              belfry rehearse --user carol --subscription urgent
              belfry rehearse --user carol --subscription urgent --draft urgent.json
            """)

    @OptionGroup var options: AdministrationOptions
    @OptionGroup var place: UsualContainerOptions

    @Option(help: "The user as whose subscription it is rehearsed.") var user: String
    @Option(help: "The database: public, private or shared.") var scope: String?
    @Option(help: "A saved subscription, to be rehearsed itself or compared with what is given.")
    var subscription: String?
    @Option(help: "A file with the draft as JSON; - is the standard input.") var draft: String?
    @Argument(help: "The condition of a draft, as NSPredicate text.") var condition: String?
    @Option(
        help: ArgumentHelp(
            "A file of changes to judge instead of a relay's, one a line in the preset belfry's "
                + "form.",
            valueName: "FILE.ndjson"), completion: .file())
    var file: String?
    @Option(
        help: ArgumentHelp(
            "Like --file, but judged by the relay: with the schema, the devices and the saved "
                + "subscriptions of the container.",
            valueName: "FILE.ndjson"))
    var upload: String?
    @Option(help: "The record type of the condition.") var recordType: String?
    @Option(help: "create, update or delete; may be repeated (default: create and update).")
    var on: [String] = []
    @Option(help: "Which updates fire: matches, entered, left or stayed.") var firesWhen: String?
    @Option(help: "How many changes to look at (default: 10000).") var changes: Int?
    @Option(help: "Changes from this moment on, such as 2026-11-23T17:00:00Z.") var since: String?
    @Option(help: "Changes before this moment.") var until: String?
    @Option(help: "Changes after this position of the log.") var after: UInt64?
    @Option(help: "Changes before this position of the log.") var before: UInt64?
    @Option(help: "How many examples to show of each kind (0 to 10).") var examples: Int?

    func validate() throws {
        if condition != nil, recordType == nil, draft == nil {
            throw ValidationError(
                "--record-type is needed: the type of the records that the condition is for")
        }
        let ofLog: [Any?] = [changes, since, until, after, before]
        let ofRelay = ofLog + [subscription, upload]
        if file != nil, !ofRelay.allSatisfy({ $0 == nil }) {
            throw ValidationError(
                "--file judges the whole file by a draft: leave out options of the log")
        }
        if upload != nil, !ofLog.allSatisfy({ $0 == nil }) {
            throw ValidationError("--upload judges the whole file: leave out options of the log")
        }
        guard draft != nil || recordType != nil || subscription != nil else {
            throw ValidationError(
                "name what to rehearse: --record-type and a condition, --draft or "
                    + "--subscription")
        }
        if let changes, !(1...Self.mostChanges).contains(changes) {
            throw ValidationError("--changes must be from 1 to \(Self.mostChanges)")
        }
        if draft != nil, recordType != nil || condition != nil {
            throw ValidationError("--draft has its own record type and condition: leave out others")
        }
    }

    func run() async throws {
        if let file {
            return try await CommandFailure.told {
                let answer = try await rehearse(file)
                let output = CommandOutput(answer, .text(try RehearsalText(answer).text))
                print(output.text(asJSON: options.json))
            }
        }
        if let upload {
            return try await options.run { client in
                let answer = try await client.upload(
                    .rehearseChanges, place.parts,
                    UploadedFile(firstLine: .object(try question()), path: upload))
                return CommandOutput(answer, .text(try RehearsalText(answer).text))
            }
        }
        try await options.run { client in
            let pages = try await pages(client)
            let answer = JSONValue.object(pages.answer)
            let remark =
                pages.isIndivisible && pages.lookedAt < wanted
                ? "A subscription that fires once is compared in one call: nothing earlier was "
                    + "looked at."
                : nil
            return CommandOutput(
                answer, .text(try RehearsalText(answer).text), remark: remark)
        }
    }

    /// The maximum number of changes in one call.
    private static let mostOfCall = 100_000
    /// The maximum number of changes in all calls together.
    private static let mostChanges = 100_000_000

    private var wanted: Int { changes ?? 0 }

    /// Makes as many calls as needed, and reports the progress.
    private func pages(_ client: AdministrationClient) async throws -> RehearsalPages {
        var pages = RehearsalPages()
        var body = try question()
        while true {
            if let changes {
                body["changes"] = .integer(
                    Int64(min(changes - pages.lookedAt, Self.mostOfCall)))
            }
            let answer = try await client.make(
                .rehearse, place.parts, body: .object(body))
            guard pages.add(answer), pages.lookedAt < wanted, let before = pages.before else {
                return pages
            }
            body["before"] = .string(before)
            let line = "(\(pages.lookedAt) changes so far, back to position \(before))\n"
            try? StandardStreams.write(Array(line.utf8), .error)
        }
    }

    /// Judges the changes of a file without a relay.
    private func rehearse(_ path: String) async throws -> JSONValue {
        guard let draft = try dictionary(), let user = UserID(rawValue: user),
            let database = DatabaseScope(rawValue: scope ?? "public"),
            let name = ContainerID(rawValue: place.container ?? "file"),
            let environment = ContainerEnvironment(rawValue: place.environment)
        else {
            throw CommandFailure(
                .input,
                "--user, --scope, --container or --environment has a value that is not allowed")
        }
        do {
            var rehearsal = try FileRehearsal(
                of: draft, user: user, database: database,
                container: ContainerKey(container: name, environment: environment),
                examples: examples ?? 3, at: World.real.now())
            let texts = try InputFile(path).bytes()
                .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            var lines = rehearsal.lines
            // With Windows line ends, an empty line still contains a carriage return.
            for (index, text) in texts.enumerated() where text.contains(where: { $0 != 0x0D }) {
                try Self.judge(await lines.add(Array(text), index + 1), of: path, &rehearsal)
            }
            while let due = await lines.rest() { try Self.judge(due, of: path, &rehearsal) }
            return try rehearsal.answer()
        } catch let error as APIError {
            throw CommandFailure(.input, error.reason)
        }
    }

    /// The number of changes of a file between progress messages.
    private static let step = 100_000

    private static func judge(
        _ lines: [FileLine], of path: String, _ rehearsal: inout FileRehearsal
    ) throws {
        let before = rehearsal.taken
        for line in lines {
            do {
                try rehearsal.take(line)
            } catch let error as APIError {
                throw CommandFailure(.input, "\(path):\(line.number): \(error.reason)")
            }
        }
        guard let remark = remark(from: before, to: rehearsal.taken) else { return }
        try? StandardStreams.write(Array(remark.utf8), .error)
    }

    /// Returns a progress message if one is due after these changes of a file.
    static func remark(from before: Int, to taken: Int) -> String? {
        guard taken / step > before / step else { return nil }
        return "(\(taken / step * step) changes so far)\n"
    }

    private func question() throws -> JSONObject {
        var body: JSONObject = ["user": .string(user)]
        body["database"] = scope.map { .string($0) }
        body["subscriptionID"] = subscription.map { .string($0) }
        body["subscription"] = try dictionary()
        body["since"] = since.map { .string($0) }
        body["until"] = until.map { .string($0) }
        body["after"] = after.map { .string(String($0)) }
        body["before"] = before.map { .string(String($0)) }
        body["examples"] = examples.map { .integer(Int64($0)) }
        return body
    }

    private func dictionary() throws -> JSONValue? {
        if let draft { return try JSONValue(typed: try InputFile(draft).text(), as: draft) }
        guard let recordType else { return nil }
        var query: JSONObject = ["recordType": .string(recordType)]
        query["predicate"] = condition.map { .string($0) }
        let operations = on.isEmpty ? ["create", "update"] : on
        var members: JSONObject = [
            "subscriptionType": "query", "query": .object(query),
            "firesOn": .array(operations.map { .string($0) }),
            "notificationInfo": ["alertBody": .string(recordType)],
        ]
        // A draft for a saved subscription has its ID.
        members["subscriptionID"] = subscription.map { .string($0) }
        members["firesWhen"] = firesWhen.map { .string($0) }
        return .object(members)
    }
}
