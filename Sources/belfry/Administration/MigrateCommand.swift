import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Updates a store's schema without starting a relay.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring the schema of a store up to date, or make a new store.")

    @Option(help: "The file, or the URL of a PostgreSQL database.", completion: .file())
    var database: String
    @Option(help: "The schema of a PostgreSQL database (default: belfry).") var schema: String?
    @Flag(help: "First accept the pages as they are, after another program changed the file.")
    var reseal = false
    @Flag(help: "Show JSON.") var json = false

    func validate() throws {
        try NamedStore.check(schema, of: database, called: "--schema")
        guard reseal, NamedStore.isServer(database) else { return }
        throw ValidationError(
            "--reseal is only for files: a store on PostgreSQL has no pages to accept")
    }

    func run() async throws {
        // A URL may contain a password. Such a URL is refused, and must not be repeated.
        var name = NamedStore.shown(database)
        do {
            if reseal { try RelayStore.reseal(path: database) }
            let store = try NamedStore(database, schema: schema)
            name = "\(store)"
            let steps = try store.migrate()
            if json {
                print(JSONValue.object(["applied": .array(steps.map { .string($0) })]).text)
            } else {
                print(
                    steps.isEmpty
                        ? "\(store) is up to date"
                        : "applied to \(store): \(steps.joined(separator: ", "))")
            }
        } catch let error as StorageError {
            throw CommandFailure.storage("\(name) cannot be brought up to date", error)
        }
    }
}

/// The overview that an operator looks at first.
struct OverviewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "overview", abstract: "Show how far the relay is, and what waits.")
    @OptionGroup var options: AdministrationOptions

    func run() async throws {
        try await options.run { client in
            let answer = try await client.make(.overview)
            return CommandOutput(answer, to: .overview, remark: Self.remark(answer))
        }
    }

    /// Returns remarks that the table does not contain.
    static func remark(_ answer: JSONValue) -> String? {
        guard case .object(let object) = answer, case .string(let head)? = object["head"],
            case .string(let behind)? = object["behind"]
        else { return nil }
        let unsettled =
            behind == "1" ? "1 entry is not settled" : "\(behind) entries are not settled"
        var lines = ["The log ends at \(head); \(unsettled)."]
        if case .integer(let count)? = object["nodes"] {
            let others = Counted.text(max(0, count - 1), "stands by", "stand by")
            lines.append("This relay has the store; \(others) (belfry nodes).")
        }
        if case .array(let sentences)? = object["disagreements"] {
            lines += sentences.map { "\(CommandOutput.shown($0))." }
        }
        if case .array(let shards)? = object["shards"] {
            lines += shards.compactMap(Self.line(ofShard:))
        }
        if case .integer(let count)? = object["rangeSubscriptions"], count > 0 {
            let subscriptions = Counted.text(count, "subscription")
            lines.append("Huge fan-outs still owe the pushes of \(subscriptions).")
        }
        if case .integer(let count)? = object["quarantined"], count > 0 {
            lines.append(
                Counted.text(
                    count, "change of the log was set aside, and fires nothing.",
                    "changes of the log were set aside, and fire nothing."))
        }
        lines += Self.lines(ofContents: object)
        if case .array(let containers)? = object["containers"] {
            lines += containers.flatMap(Self.remarks(onSourcesOf:))
        }
        if case .array(let halts)? = object["halts"] {
            lines += halts.compactMap(Self.line(of:))
        }
        if case .object(let bounds)? = object["refusing"] {
            for case (let bound, .string(let reason)) in bounds.members {
                lines.append("Changes are refused (\(bound)): \(reason).")
            }
        }
        if case .object(let backup)? = object["backup"] {
            lines.append(Self.line(ofBackup: backup))
        }
        return lines.joined(separator: "\n")
    }

    /// Returns the problems with the contents of the store.
    private static func lines(ofContents object: JSONObject) -> [String] {
        var lines: [String] = []
        if case .integer(let difference)? = object["difference"], difference != 0 {
            let deliveries = Counted.text(difference, "delivery", "deliveries")
            lines.append("The delivery accounts differ by \(deliveries) (belfry check).")
        }
        if case .integer(let count)? = object["unreadableRows"], count > 0 {
            let rows = Counted.text(count, "row of the store", "rows of the store")
            lines.append("\(rows) cannot be read (belfry check).")
        }
        return lines
    }

    /// Returns that a shard cannot be reached; `nil` for a shard with an owner.
    private static func line(ofShard shard: JSONValue) -> String? {
        guard let reason = shard.member(["reason"]) else { return nil }
        let name = CommandOutput.shown(shard.member(["shard"]))
        let why = CommandOutput.shown(reason)
        return "The shard \(name) cannot be reached: \(why) (belfry shards)."
    }

    /// Returns the status of continuous backup, in one line.
    private static func line(ofBackup backup: JSONObject) -> String {
        func text(_ name: String) -> String {
            if case .string(let text)? = backup[name] { text } else { "" }
        }
        let until = text("shippedUntil")
        let reason =
            JSONValue.object(backup).member(["failure", "reason"])
            .map { ": \(CommandOutput.shown($0))" } ?? ""
        return until.isEmpty
            ? "No backup is whole yet at \(text("place"))\(reason)."
            : "Backups are at \(text("place")), with everything up to \(until)\(reason)."
    }

    /// Returns the problems of a container's sources, one line each.
    private static func remarks(onSourcesOf container: JSONValue) -> [String] {
        guard
            case .array(let sources)? = container.member(["webhooks", "sources"])
        else { return [] }
        let place = CommandOutput.shown(container.member(["container"]))
        return sources.flatMap { source in
            [refusal(of: source, place), following(of: source, place)].compactMap(\.self)
        }
    }

    /// Returns that the last webhook of a source was refused; `nil` if it was accepted.
    private static func refusal(of source: JSONValue, _ place: String) -> String? {
        // Both are RFC 3339 in UTC, so they sort by time.
        guard text("lastRefused", of: source) > text("lastAccepted", of: source) else {
            return nil
        }
        return "The last webhook of the source \(text("name", of: source)) of \(place) was refused "
            + "at \(text("lastRefused", of: source)): \(text("lastReason", of: source)) "
            + "(belfry sources refused)."
    }

    /// Returns that the database of a source is not followed properly; `nil` if it is.
    private static func following(of source: JSONValue, _ place: String) -> String? {
        let verdict = text("following", "verdict", of: source)
        guard !verdict.isEmpty, verdict != "well" else { return nil }
        return "The database of the source \(text("name", of: source)) of \(place): "
            + "\(text("following", "state", of: source)). "
            + text("following", "sentence", of: source)
    }

    private static func text(_ path: String..., of source: JSONValue) -> String {
        source.member(path).map(CommandOutput.shown) ?? ""
    }

    /// Returns a halt, in one line.
    private static func line(of halt: JSONValue) -> String? {
        guard case .object(let halt) = halt else { return nil }
        func text(_ name: String) -> String {
            if case .string(let text)? = halt[name] { text } else { "" }
        }
        let topic = text("topic").isEmpty ? "" : " \(text("topic"))"
        return "\(text("container"))/\(text("environment")) waits (\(text("scope"))\(topic), "
            + "\(text("apnsEnvironment"))) since \(text("since")): \(text("reason")); "
            + "tried again at \(text("until"))"
            + (text("askedUntil").isEmpty ? "." : ", asked for until \(text("askedUntil")).")
    }
}
