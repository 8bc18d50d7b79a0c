import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// Explains why a change fired a subscription or did not.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Tell why a change fired a subscription or did not, and what became of the push.",
        discussion: """
            The command finds a running belfry dev by itself. Name a change together with a \
            subscription and its user, with a user alone, or with a device; or name a delivery; or \
            a subscription alone.

              belfry explain --record Todo/t1 --subscription urgent --user carol
              belfry explain --change 1234 --device carols-phone
              belfry explain --delivery 71e7c0de-0000-8000-8000-000000000000
              belfry explain --subscription urgent --user carol
              belfry explain --source shop --webhook-id msg_2kWq
            """)

    @OptionGroup var options: AdministrationOptions
    @OptionGroup var place: UsualContainerOptions

    @Option(help: "The change at this position of the log.") var change: UInt64?
    @Option(help: "The latest changes of this record, as Type/name.") var record: String?
    @Option(help: "What this source sent under the ID that --webhook-id names.") var source: String?
    @Option(help: "The ID under which the source sent the webhook.") var webhookID: String?
    @Option(help: "The subscription's ID.") var subscription: String?
    @Option(help: "The user whose subscription or device it is.") var user: String?
    @Option(help: "The device's ID.") var device: String?
    @Option(help: "The delivery (its apns-id).") var delivery: String?
    @Option(help: "public, private or shared (default: the change's, or the subscription's).")
    var scope: String?
    @Option(help: "How many changes to explain at most.") var limit: Int?
    @Flag(help: "Show every step, not only the one that decided.") var steps = false

    func validate() throws {
        guard
            change != nil || record != nil || subscription != nil || delivery != nil
                || webhookID != nil
        else {
            throw ValidationError(
                "name what to explain: --change, --record, --webhook-id, --delivery or "
                    + "--subscription")
        }
        if record != nil, Self.parts(of: record) == nil {
            throw ValidationError("--record: a type and a name are expected, such as Todo/t1")
        }
    }

    func run() async throws {
        try await options.run { client in
            let record = Self.parts(of: record)
            let answer = try await client.make(
                .explain, place.parts,
                query: [
                    ("position", change.map(String.init)), ("recordType", record?.type),
                    ("recordName", record?.name), ("source", source), ("webhookID", webhookID),
                    ("subscription", subscription), ("user", user),
                    ("device", device), ("delivery", delivery), ("database", scope),
                    ("limit", limit.map(String.init)),
                ])
            return CommandOutput(
                answer, .text(try ExplanationText(answer, showsSteps: steps).text))
        }
    }

    /// Parses a type and a name, which may contain slashes.
    private static func parts(of record: String?) -> (type: String, name: String)? {
        guard let record, let slash = record.firstIndex(of: "/") else { return nil }
        let name = String(record[record.index(after: slash)...])
        return slash == record.startIndex || name.isEmpty
            ? nil : (String(record[..<slash]), name)
    }
}

/// The answer of `explain` in readable form.
struct ExplanationText {
    private let answer: JSONReader
    private let showsSteps: Bool

    init(_ answer: JSONValue, showsSteps: Bool) throws {
        self.answer = try JSONReader(answer)
        self.showsSteps = showsSteps
    }

    /// The whole text: every step of a single explanation, or the sentences of several.
    var text: String {
        get throws {
            let explanations = try (answer.array("explanations") ?? []).map { try JSONReader($0) }
            let isOne = explanations.count == 1
            var blocks: [String] = []
            let sentence = try answer.string("sentence") ?? ""
            // For a subscription alone, the sentence says more than the only explanation.
            let saysMore = ["known", "lookedThrough"].contains { answer.value($0) != nil }
            if !isOne || saysMore {
                blocks.append(CommandOutput.shown(.string(sentence)))
            }
            for explanation in explanations {
                blocks.append(try block(explanation, withSteps: isOne || showsSteps))
            }
            if case .integer(let others)? = answer.value("others"), others > 0 {
                blocks.append("\(others) more did not fire.")
            }
            return blocks.joined(separator: "\n\n")
        }
    }

    private func block(_ explanation: JSONReader, withSteps: Bool) throws -> String {
        var title = "change \(try explanation.string("position") ?? "?")"
        if let id = try explanation.string("subscriptionID") { title += ", \(id)" }
        if let user = try explanation.string("userRecordName") { title += " of \(user)" }
        var lines = [title, "  " + shown(try explanation.string("sentence"))]
        if withSteps {
            lines += try steps(of: explanation, indent: "    ")
            for device in try (explanation.array("devices") ?? []).map({ try JSONReader($0) }) {
                lines.append("")
                lines.append(
                    "  \(try device.string("deviceID") ?? "?"): "
                        + shown(try device.string("sentence")))
                if let delivery = try device.string("deliveryID") {
                    lines.append("    apns-id \(delivery)")
                }
                lines += try steps(of: device, indent: "    ")
                if let payload = device.value("payload") { lines.append("    \(payload.text)") }
            }
        }
        return lines.joined(separator: "\n")
    }

    private func steps(of reader: JSONReader, indent: String) throws -> [String] {
        try (reader.array("steps") ?? []).flatMap { step -> [String] in
            let step = try JSONReader(step)
            let mark =
                switch try step.string("outcome") {
                case "passed": "+"
                case "failed": "x"
                case "unknown": "?"
                default: "-"
                }
            let name = (try step.string("step") ?? "").padded(to: 11)
            let line = "\(indent)\(mark) \(name) \(shown(try step.string("says")))"
            return [line] + (try comparisons(of: step, indent: indent))
        }
    }

    /// Returns the comparisons of a condition, one line each.
    private func comparisons(of step: JSONReader, indent: String) throws -> [String] {
        let facts = try step.reader("facts")
        return try (facts?.array("comparisons") ?? []).map { comparison in
            let comparison = try JSONReader(comparison)
            let came =
                switch comparison.value("outcome") {
                case .bool(true)?: "true"
                case .bool(false)?: "false"
                default: "no answer"
                }
            return "\(indent)              \(shown(try comparison.string("comparison"))): \(came), "
                + shown(try comparison.string("reason"))
        }
    }

    private func shown(_ text: String?) -> String {
        CommandOutput.shown(text.map { .string($0) })
    }
}
