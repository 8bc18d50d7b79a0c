import ArgumentParser
import RelayModel

/// Changes in the log, and what could not be mapped.
struct ChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes", abstract: "Lists changes; lists, replays and drops parked ones.",
        subcommands: [List.self, Parked.self, Replay.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists changes in the log.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those after this position.") var after: UInt64?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([
                ("after", after.map(String.init)), ("limit", String(limit)),
            ])
            try await options.list(
                "changes", at: container.path + "/changes" + query,
                [
                    .init("position", "position"), .init("source", "source"),
                    .init("operation", "change.op"), .init("record type", "change.type"),
                    .init("record", "change.name"), .init("appended", "appendedAt"),
                    .init("stale", "stale"),
                ])
        }
    }

    struct Parked: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists what sources sent and could not be mapped.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those after this number.") var after: UInt64?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([
                ("after", after.map(String.init)), ("limit", String(limit)),
            ])
            try await options.list(
                "parked", at: container.path + "/changes/parked" + query,
                [
                    .init("number", "number"), .init("source", "source"),
                    .init("received", "receivedAt"), .init("at", "path"),
                    .init("reason", "reason"),
                ])
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sends parked changes through the mapper again.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "Their numbers.") var numbers: [UInt64]

        func run() async throws {
            try await options.run { client in
                var results: [JSONValue] = []
                for number in numbers {
                    let path = "\(container.path)/changes/parked/\(number)/replay"
                    results.append(contentsOf: Self.results(try await client.call("POST", path)))
                }
                return CommandOutput(
                    ["results": .array(results)],
                    .table(
                        of: "results",
                        [
                            .init("status", "status"), .init("position", "position"),
                            .init("reason", "reason"),
                        ]))
            }
        }

        private static func results(_ answer: JSONValue) -> [JSONValue] {
            guard case .object(let object) = answer, case .array(let results)? = object["results"]
            else { return [] }
            return results
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes parked changes for good.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "Their numbers.") var numbers: [UInt64]

        func run() async throws {
            try await options.run { client in
                var dropped: [JSONValue] = []
                for number in numbers {
                    let path = "\(container.path)/changes/parked/\(number)"
                    dropped.append(try await client.call("DELETE", path))
                }
                return CommandOutput(
                    ["dropped": .array(dropped)],
                    .table(
                        of: "dropped", [.init("number", "number"), .init("deleted", "deleted")]))
            }
        }
    }
}
