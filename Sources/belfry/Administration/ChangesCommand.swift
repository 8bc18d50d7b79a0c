import ArgumentParser
import RelayModel
import RelayServer

/// Changes in the log, and parked changes.
struct ChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List, show and follow changes; list, replay and drop parked ones.",
        subcommands: [
            List.self, Show.self, Tail.self, Parked.self, Replay.self, Drop.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List changes in the log, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var records: RecordOptions
        @Option(help: "Only those that this source sent.") var source: String?
        @Option(help: "Only those in this user's own database, or made by this user.")
        var user: String?
        @Option(help: "Only those in this state: applied or stale.") var state: String?
        @Option(help: "Only those before this position.") var before: UInt64?
        @Option(help: "Only those after this position, in the order of the log.")
        var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listChanges, container.parts,
                query: records.query + [
                    ("source", source), ("user", user), ("state", state),
                    ("before", before.map(String.init)), ("after", after.map(String.init)),
                ] + bound.query)
        }
    }

    struct Parked: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List parked changes, which could not be mapped, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those of this source.") var source: String?
        @Option(help: "Only those before this number.") var before: UInt64?
        @Option(help: "Only those after this number, the oldest first.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listParked, container.parts,
                query: [
                    ("source", source), ("before", before.map(String.init)),
                    ("after", after.map(String.init)),
                ] + bound.query)
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send parked changes through the mapper again.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The numbers of the parked changes.") var numbers: [UInt64]

        /// Replays each of the changes; a failure does not stop the others.
        func run() async throws {
            var failed = 0
            try await options.run { client in
                var results: [JSONValue] = []
                for number in numbers {
                    do {
                        let answer = try await client.make(
                            .replayParked, container.parts(["number": String(number)]))
                        results += Self.results(answer, number)
                    } catch let failure as CommandFailure where failure.kind.concernsOne {
                        failed += 1
                        results.append([
                            "number": .integer(Int64(clamping: number)), "status": "failed",
                            "reason": .string(failure.description),
                        ])
                    }
                }
                let remark =
                    failed == 0
                    ? nil
                    : "\(failed) of \(numbers.count) could not be replayed; belfry changes parked "
                        + "lists what is parked still."
                return CommandOutput(
                    ["results": .array(results)], to: .replayParked, remark: remark)
            }
            if failed > 0 { throw ExitCode(CommandFailure.Kind.refused.rawValue) }
        }

        private static func results(_ answer: JSONValue, _ number: UInt64) -> [JSONValue] {
            guard case .object(let object) = answer, case .array(let results)? = object["results"]
            else { return [] }
            return results.map { result in
                guard case .object(var object) = result else { return result }
                object["number"] = .integer(Int64(clamping: number))
                return .object(object)
            }
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete parked changes for good.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The numbers of the parked changes.") var numbers: [UInt64]

        /// Drops each of the changes; a failure does not stop the others or hide their results.
        func run() async throws {
            var failures: [String] = []
            try await options.run { client in
                var dropped: [JSONValue] = []
                for number in numbers {
                    do {
                        dropped.append(
                            try await client.make(
                                .dropParked, container.parts(["number": String(number)])))
                    } catch let failure as CommandFailure where failure.kind.concernsOne {
                        failures.append("\(number) could not be dropped: \(failure)")
                        dropped.append([
                            "number": .integer(Int64(clamping: number)), "deleted": false,
                            "reason": .string(failure.description),
                        ])
                    }
                }
                return CommandOutput(
                    ["dropped": .array(dropped)], to: .dropParked,
                    remark: failures.isEmpty ? nil : failures.joined(separator: "\n"))
            }
            if !failures.isEmpty { throw ExitCode(CommandFailure.Kind.refused.rawValue) }
        }
    }
}
