import ArgumentParser
import FoundationEssentials
import Glibc
import RelayModel
import RelayServer

/// Shows the events of a running relay as they happen.
struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Show changes, what they fire, and pushes, as they happen.",
        discussion: """
            The command finds a running belfry dev by itself. With --forward-to it posts every \
            push to a URL of yours, in JSON, as the relay composed it. It goes on until you end \
            it, even while the relay restarts, and says where it missed anything.

              belfry listen --only push --forward-to http://localhost:3000/pushes
            """)

    /// The kinds of events, in the words of the option.
    enum Shown: String, CaseIterable, ExpressibleByArgument, Sendable {
        case change, match, push, answer
    }

    @OptionGroup var options: AdministrationOptions
    @OptionGroup var place: UsualContainerOptions

    @Option(help: "What to show: change, match, push or answer; may be repeated (default: all).")
    var only: [Shown] = []
    @Option(help: "Only what happens to records of this type.")
    var recordType: String?
    @Option(help: "Only what is fired for this user.")
    var user: String?
    @Option(help: "Only what is fired by subscriptions with this ID.")
    var subscription: String?
    @Option(help: "Post every push to this URL.")
    var forwardTo: String?

    /// The pause before asking a relay again that does not answer.
    private static let rest = Duration.seconds(1)
    /// How long the relay may hold a call open, in seconds.
    private static let hold = 25

    func validate() throws {
        if options.database != nil {
            throw ValidationError(
                "--database is not allowed here: events come from a running relay")
        }
        if forwardTo != nil, !only.isEmpty, !only.contains(.push) {
            throw ValidationError(
                "--forward-to posts pushes, but --only leaves them out: add --only push")
        }
        if let forwardTo { _ = try PushForwarding.url(forwardTo) }
    }

    func run() async throws {
        try await CommandFailure.told {
            let forwarding = try forwardTo.map(PushForwarding.init)
            var progress = Progress()
            while true {
                do {
                    try await listen(&progress, forwarding)
                } catch let failure as CommandFailure
                    where failure.kind != .refused && progress.after != nil
                {
                    if !progress.isLost { note("the relay does not answer; trying again") }
                    progress.isLost = true
                    try await World.real.clock.sleep(for: Self.rest)
                }
            }
        }
    }

    /// How far the command has read the events.
    private struct Progress {
        var after: String?
        var isLost = false
    }

    private func listen(_ progress: inout Progress, _ forwarding: PushForwarding?) async throws {
        var known = progress
        defer { progress = known }
        try await options.withClient { client in
            let name = try client.name(of: place.container)
            let parts = ["container": name, "environment": place.environment]
            while true {
                let answer = try await client.make(
                    .listenEvents, parts,
                    query: [
                        ("after", known.after), ("hold", String(Self.hold)),
                        ("only", only.isEmpty ? nil : only.map(\.rawValue).joined(separator: ",")),
                        ("recordType", recordType), ("user", user),
                        ("subscription", subscription),
                    ])
                let reader = try JSONReader(answer)
                let isFirst = known.after == nil
                known.after = try reader.string("after")
                if isFirst { note("listening to \(name)/\(place.environment)") }
                if known.isLost { note("the relay answers again") }
                known.isLost = false
                tellMissed(reader)
                guard case .array(let events)? = reader.value("events") else { continue }
                for case .object(let event) in events {
                    try show(
                        options.json
                            ? ShownText.json(JSONValue.object(event).text)
                            : ShownText.plain(EventLine(event).text))
                    guard let forwarding, event["kind"] == "push" else { continue }
                    note(await forwarding.post(event, parts))
                }
            }
        }
    }

    private func tellMissed(_ reader: JSONReader) {
        if reader.value("restarted") != nil {
            note("the relay was restarted; events before that may be missing")
        }
        if case .integer(let missed)? = reader.value("missed"), missed > 0 {
            note("\(missed) events came too fast and are not shown")
        }
    }

    /// Prints an event.
    ///
    /// If the reader of the output is gone, the command ends, so that the relay stops keeping
    /// events for it. With forwarding it continues, because the pushes are still wanted.
    private func show(_ line: String) throws {
        do {
            try StandardStreams.write(Array("\(line)\n".utf8), .output)
        } catch let error as POSIXError where error.code == .EPIPE && forwardTo == nil {
            throw error
        } catch {}
    }

    /// Prints a remark that is not an event.
    private func note(_ text: String) {
        let line = Array("(\(text))\n".utf8)
        try? StandardStreams.write(line, options.json ? .error : .output)
    }
}

/// An event in readable form.
struct EventLine {
    private let event: JSONObject

    init(_ event: JSONObject) {
        self.event = event
    }

    /// The event in one line.
    var text: String {
        let time = member("at").dropFirst(11).prefix(8)
        let kind = member("kind")
        let padded = kind.padded(to: 7)
        return "\(time)  \(padded) \(said(kind))"
    }

    private func said(_ kind: String) -> String {
        switch kind {
        case "change": "\(record): \(outcome)\(leftOut)"
        case "match": "\(record): \(member("subscriptionID")) of \(member("userRecordName"))"
        case "answer":
            "\(record): to \(member("deviceID")) of \(member("userRecordName")): \(answered)"
        default:
            "\(record): to \(member("deviceID")) of \(member("userRecordName")) by "
                + "\(member("subscriptionID")): \(shown)"
        }
    }

    /// The gateway's answer, and the outcome of the push if it is not simply accepted.
    private var answered: String {
        guard case .object(let answer)? = event["answer"] else { return "" }
        let words = ["status", "reason"].map { CommandOutput.shown(answer[$0]) }
            .filter { !$0.isEmpty && $0 != "0" }.joined(separator: " ")
        let becomes = CommandOutput.shown(answer["becomes"])
        let next = answer["nextAt"].map { "; tried again at \(CommandOutput.shown($0))" } ?? ""
        return words + (becomes == "accepted" ? "" : "; \(becomes)") + next
    }

    private var record: String {
        guard event["recordType"] != nil else { return "the change at \(member("position"))" }
        return "\(member("recordType"))/\(member("recordName")) (\(member("operation")))"
    }

    private var outcome: String {
        switch member("outcome") {
        case "stale": "fired nothing; a newer version of it was applied before"
        case "snapshot": "fired nothing; it is a row of a snapshot"
        case "setAside": "set aside; it cannot be processed"
        default: "fired \(event["fired"]?.text ?? "0")"
        }
    }

    private var leftOut: String {
        guard event["leftOut"] != nil else { return "" }
        return "; not notified, because the change was made there: \(member("leftOut"))"
    }

    /// The text that the notification shows.
    private var shown: String {
        guard let notification = event["notification"] else { return "" }
        let alert = notification.member(["payload", "aps", "alert"])
        switch alert {
        case .string?: return CommandOutput.shown(alert)
        case .object(let object)?:
            return CommandOutput.shown(object["body"] ?? object["title"] ?? .object(object))
        default: return CommandOutput.shown(notification.member(["pushType"]))
        }
    }

    private func member(_ name: String) -> String {
        CommandOutput.shown(event[name])
    }
}
