import ArgumentParser
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL

/// The relays of a store on a server: its owner, and those that stand by.
struct NodesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes",
        abstract: "List the relays of a store on PostgreSQL: its owner, and those that stand by.",
        discussion: """
            The command asks the database, so it works even when no relay answers. A relay says \
            every second that it is there; one that falls silent is listed for three minutes. \
            Below the list are the settings in which a relay differs from the owner. Where a \
            service has several shards (nodes.schemas), the command asks all of them, and names \
            the machine that should own a shard if another one does.
            """)

    @OptionGroup var store: StoreFileOptions
    @Option(
        help: "The schemas of all shards, divided by commas (default: nodes.schemas, if any).")
    var schemas: String?
    @Flag(help: "Show JSON.") var json = false

    /// The schemas given by the option; `nil` without it.
    private var named: [String]? {
        schemas?.split(separator: ",").map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty }
    }

    func validate() throws {
        guard named == [] else { return }
        throw ValidationError("--schemas must name at least one schema")
    }

    func run() async throws {
        let found = try await store.store()
        guard case .server(let place) = found else {
            throw ValidationError("\(found) is a file, which has one relay: see belfry overview")
        }
        let shards: [String]
        if let named { shards = named } else { shards = try await store.schemas() }
        let places: [PostgresPlace]
        do {
            places = try shards.map { try place.beside(schema: $0) }
        } catch let error as StorageError {
            throw CommandFailure.storage("the shards cannot be read", error)
        }
        guard places.count > 1 else { return try showOne(places.first ?? place) }
        let (text, isRead) = show(places)
        print(text)
        guard isRead else { throw ExitCode(CommandFailure.Kind.unavailable.rawValue) }
    }

    /// Shows the relays of the only store.
    private func showOne(_ place: PostgresPlace) throws {
        do {
            let nodes = ShardNodes(try RelayStore.nodes(place))
            let answer = JSONValue.object(["nodes": .array(nodes.json(shard: nil))])
            print(json ? answer.text : nodes.lines.joined(separator: "\n"))
        } catch let error as StorageError {
            throw CommandFailure.storage("\(place) cannot be read", error)
        }
    }

    /// Returns the relays of each shard, and whether any shard could be read.
    ///
    /// An unreadable shard does not hide the others.
    private func show(_ places: [PostgresPlace]) -> (text: String, isRead: Bool) {
        var isRead = false
        var (nodes, shards, lines): ([JSONValue], [JSONValue], [String]) = ([], [], [])
        for place in places {
            var shard: JSONObject = ["shard": .string(place.schema)]
            lines.append("\(place.schema):")
            do {
                let found = ShardNodes(try RelayStore.nodes(place))
                let spread = NamedSpread(of: place)
                isRead = true
                nodes += found.json(shard: place.schema)
                lines += (found.lines + spread.remarks).map { "  \($0)" }
                shard["shouldOwn"] = spread.machine.map { .string($0) } ?? .null
                shard["notSpread"] = spread.hindrance.map { .string($0) } ?? .null
            } catch {
                shard["problem"] = .string("\(error)")
                lines.append("  " + CommandOutput.shown(.string("\(error)")))
            }
            shards.append(.object(shard))
        }
        let answer = JSONValue.object(["nodes": .array(nodes), "shards": .array(shards)])
        return (json ? answer.text : lines.joined(separator: "\n"), isRead)
    }
}

/// The relays of one store.
private struct ShardNodes {
    let nodes: [StoreNode]

    init(_ nodes: [StoreNode]) { self.nodes = nodes }

    private var there: [StoreNode] { nodes.filter { $0.role != .silent } }
    /// The relay that the settings of the others are compared with.
    private var first: StoreNode? { there.first { $0.settings != nil } }

    var lines: [String] {
        guard !nodes.isEmpty else { return ["no relay"] }
        return nodes.map(\.line) + there.compactMap { $0.remark(beside: first) }
    }

    /// Returns the relays in JSON, with their shard if there are several.
    func json(shard: String?) -> [JSONValue] {
        nodes.map { node in
            var object = node.json(beside: first)
            object["shard"] = shard.map { .string($0) }
            return .object(object)
        }
    }
}

extension StoreNode {
    /// The relay in one line of text.
    var line: String {
        let told =
            switch role {
            case .owner: "owns the store"
            case .standingBy:
                switch standby {
                case .warm: "stands by with the store's state"
                case .loading: "stands by and loads the store's state"
                case nil: "stands by"
                }
            case .silent: "is silent"
            case .move: "moves the store"
            }
        let lease = leaseUntil.map { ", lease until \($0), epoch \(epoch ?? 0)" } ?? ""
        let place = address.map { ", at \($0)" } ?? ""
        // A relay is usually named after its machine.
        let host = machine.flatMap { name.hasPrefix($0) ? nil : ", on \($0)" } ?? ""
        let times = since.isEmpty ? "" : ", since \(since), seen \(seen)"
        let text = "\(name) (\(version.isEmpty ? "version unknown" : version)) \(told)\(times)"
        return CommandOutput.shown(.string(text + lease + place + host))
    }

    /// Returns the settings in which this relay differs from another.
    private func differences(beside other: StoreNode?) -> [SettingDifference] {
        guard let settings, let theirs = other?.settings else { return [] }
        return theirs.differences(of: settings)
    }

    /// Returns advice about settings that differ from those of another relay; `nil` if none do.
    func remark(beside other: StoreNode?) -> String? {
        let differences = differences(beside: other)
        guard let other, !differences.isEmpty else { return nil }
        let list = SettingDifference.list(differences, \.comparison)
        return CommandOutput.shown(
            .string(
                "\(name) has other settings than \(other.name) (\(list)): "
                    + "give all relays the same"))
    }

    func json(beside other: StoreNode?) -> JSONObject {
        [
            "name": .string(name), "version": .string(version), "role": .string(role.rawValue),
            "since": .string(since), "seen": .string(seen),
            "leaseUntil": leaseUntil.map { .string($0) } ?? .null,
            "epoch": epoch.map { .integer($0) } ?? .null,
            "address": address.map { .string($0) } ?? .null,
            "standby": standby.map { .string($0.rawValue) } ?? .null,
            "machine": machine.map { .string($0) } ?? .null,
            "otherSettings": .array(differences(beside: other).map(\.json)),
        ]
    }
}

/// Whether a store is on the machine where it should be, if stores are spread over machines.
private struct NamedSpread {
    /// The machine that should own the store, if another one owns it.
    var machine: String?
    /// Why stores are not moved between machines.
    var hindrance: String?

    init(of place: PostgresPlace) {
        do {
            guard let view = try RelayStore.view(from: place) else { return }
            hindrance = view.hindrance
            let (owner, other) = (view.owner(of: place.schema), view.machine(for: place.schema))
            if owner != nil, owner != other { machine = other }
        } catch {
            // The relays of the store itself are shown anyway.
            hindrance = "the relays of all stores cannot be seen: \(error)"
        }
    }

    /// The remarks about the spread.
    var remarks: [String] {
        let remarks = [
            hindrance.map { "stores are not spread over the machines: \($0)" },
            machine.map {
                "\($0) should own the store: it is handed over once no relay has started or ended "
                    + "for 10 s, at most once a minute"
            },
        ]
        return remarks.compactMap { $0 }.map { CommandOutput.shown(.string($0)) }
    }
}

private extension SettingDifference {
    var json: JSONValue {
        ["name": .string(name), "value": .string(theirs), "elsewhere": .string(own)]
    }
}
