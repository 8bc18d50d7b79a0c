import ArgumentParser
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL

/// Which relays have a store on a server, or stand by for it.
struct NodesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes",
        abstract: "Lists the relays of a store on PostgreSQL: its owner, and who stands by.",
        discussion: """
            It asks the database, and so works when no relay answers. A relay says every second \
            that it is there; one that is silent is listed for three minutes. Settings that a \
            relay has otherwise than the owner are named below.
            """)

    @OptionGroup var store: StoreFileOptions
    @Flag(help: "Show JSON.") var json = false

    func run() async throws {
        let named = try await store.store()
        guard case .server(let place) = named else {
            throw ValidationError("\(named) is a file, which has one relay: see belfry overview")
        }
        do {
            let nodes = try RelayStore.nodes(place)
            let there = nodes.filter { $0.role != .silent }
            let first = there.first { $0.settings != nil }
            let answer = JSONValue.object([
                "nodes": .array(nodes.map { .object($0.json(beside: first)) })
            ])
            let lines =
                nodes.isEmpty
                ? ["no relay"] : nodes.map(\.line) + there.compactMap { $0.remark(beside: first) }
            print(json ? answer.text : lines.joined(separator: "\n"))
        } catch let error as StorageError {
            throw CommandFailure.storage("\(place) cannot be asked", error)
        }
    }
}

extension StoreNode {
    /// What it is, for people.
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
        let times = since.isEmpty ? "" : ", since \(since), seen \(seen)"
        let text = "\(name) (\(version.isEmpty ? "version unknown" : version)) \(told)\(times)"
        return CommandOutput.shown(.string(text + lease + place))
    }

    /// What it has set otherwise than another.
    private func differences(beside other: StoreNode?) -> [SettingDifference] {
        guard let settings, let theirs = other?.settings else { return [] }
        return theirs.differences(of: settings)
    }

    /// What is to be done about settings that another relay has otherwise, for people; `nil` if it
    /// has none.
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
            "otherSettings": .array(differences(beside: other).map(\.json)),
        ]
    }
}

private extension SettingDifference {
    var json: JSONValue {
        ["name": .string(name), "value": .string(theirs), "elsewhere": .string(own)]
    }
}
