import ArgumentParser
import RelayModel
import RelayServer

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
        @Option(help: "How many to show at most.") var limit = 100

        func run() async throws {
            try await options.make(
                .listChanges, container.parts,
                query: [("after", after.map(String.init)), ("limit", String(limit))])
        }
    }

    struct Parked: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists what sources sent and could not be mapped.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those after this number.") var after: UInt64?
        @Option(help: "How many to show at most.") var limit = 100

        func run() async throws {
            try await options.make(
                .listParked, container.parts,
                query: [("after", after.map(String.init)), ("limit", String(limit))])
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
                    let answer = try await client.make(
                        .replayParked, container.parts(["number": String(number)]))
                    results.append(contentsOf: Self.results(answer))
                }
                return CommandOutput(["results": .array(results)], to: .replayParked)
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
                    dropped.append(
                        try await client.make(
                            .dropParked, container.parts(["number": String(number)])))
                }
                return CommandOutput(["dropped": .array(dropped)], to: .dropParked)
            }
        }
    }
}
