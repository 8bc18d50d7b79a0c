import ArgumentParser
import RelayModel
import RelayServer

/// A record in the notation of the command line: `Type/name`.
struct RecordArgument: ExpressibleByArgument, Hashable {
    let type: String
    let name: String

    /// Parses a type, a slash and a name.
    ///
    /// The name may contain further slashes.
    init?(argument: String) {
        guard let slash = argument.firstIndex(of: "/"), slash != argument.startIndex else {
            return nil
        }
        type = String(argument[..<slash])
        name = String(argument[argument.index(after: slash)...])
        if name.isEmpty { return nil }
    }
}

/// The filter of a list by records.
struct RecordOptions: ParsableArguments {
    @Option(help: "Only those of records of this type.") var type: String?
    @Option(help: "Only those of this record, as Type/name.") var record: RecordArgument?

    func validate() throws {
        guard let type, let record, type != record.type else { return }
        throw ValidationError("--record is of the type \(record.type), and --type is \(type)")
    }

    var query: [(String, String?)] {
        [("recordType", record?.type ?? type), ("record", record?.name)]
    }
}

/// The filter of deliveries by names.
struct DeliveryOptions: ParsableArguments {
    @Option(help: "Only those of this user.") var user: String?
    @Option(help: "Only those of this subscription of the user.") var subscription: String?
    @Option(help: "Only those of this device of the user.") var device: String?
    @OptionGroup var records: RecordOptions

    func validate() throws {
        guard user != nil || subscription == nil && device == nil else {
            throw ValidationError(
                "--user is needed with --subscription and --device: users may have the same")
        }
    }

    var query: [(String, String?)] {
        [("user", user), ("subscription", subscription), ("device", device)] + records.query
    }

    /// Whether no user and no record is named.
    var isEmpty: Bool { user == nil && records.type == nil && records.record == nil }
}

/// The maximum length of a list.
struct LimitOptions: ParsableArguments {
    @Option(help: "How many to show at most.") var limit = 100

    var query: [(String, String?)] { [("limit", String(limit))] }
}

/// The maximum length of a list, and where it begins.
struct PageOptions: ParsableArguments {
    @Option(help: "Only those before this place, which the previous list named.")
    var before: String?
    @OptionGroup var bound: LimitOptions

    var query: [(String, String?)] { [("before", before)] + bound.query }
}

extension AdministrationOptions {
    /// Makes a call that returns a list, and shows how to continue the list.
    func list(
        _ call: AdministrationCall, _ parts: [String: String] = [:],
        query: [(String, String?)] = []
    ) async throws {
        try await run { client in
            let answer = try await client.make(call, parts, query: query)
            return CommandOutput(answer, to: call, remark: Self.more(answer))
        }
    }

    /// Makes a call that lists from the beginning only, and remarks if the list may be incomplete.
    func list(
        _ call: AdministrationCall, _ parts: [String: String], query: [(String, String?)] = [],
        upTo limit: Int
    ) async throws {
        try await run { client in
            let answer = try await client.make(
                call, parts, query: query + [("limit", String(limit))])
            return CommandOutput(
                answer, to: call, remark: Self.cut(answer, of: call, at: limit))
        }
    }

    /// The maximum number of rows that a call lists.
    private static let mostRows = 1000

    /// Returns the remark about a list that has as many rows as were requested, and no place from
    /// which it continues; `nil` if it is complete.
    static func cut(
        _ answer: JSONValue, of call: AdministrationCall, at limit: Int
    ) -> String? {
        guard let list = call.list, case .array(let rows)? = answer.member([list.member]),
            rows.count >= limit
        else { return nil }
        return limit < mostRows
            ? "There may be more: --limit takes up to \(mostRows)"
            : "There may be more that are not listed"
    }

    /// Returns how to continue a list; `nil` if it is complete.
    static func more(_ answer: JSONValue) -> String? {
        guard case .object(let object) = answer else { return nil }
        for name in ["before", "after"] {
            switch object[name] {
            case .string(let place)?: return "There may be more: --\(name) \(place)"
            case .integer(let place)?: return "There may be more: --\(name) \(place)"
            default: continue
            }
        }
        return nil
    }
}
