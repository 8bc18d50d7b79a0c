import ArgumentParser
import Foundation
import RelayServer

@main
struct Belfry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "belfry",
        abstract: "CloudKit-style subscriptions for any database.",
        subcommands: [DevCommand.self, ServeCommand.self, TriggerCommand.self, ListenCommand.self]
            + AdministrationCommands.all
            + [
                PredicateCommand.self, MatchCommand.self, GatewayCommand.self, BenchCommand.self,
            ])

    static func main() async {
        let process = ProcessInfo.processInfo
        ProcessMemory.limitArenas(
            environment: process.environment, processors: process.activeProcessorCount)
        OneLineStream.bootstrap()
        await main(nil)
    }
}

/// What an operator measures on a machine that has the executable and nothing else.
///
/// That is the disk, which bounds what the relay can take in. The other benchmarks are a program of
/// their own, in `Tests/Benchmarks`.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure what this machine's disk can take in.",
        subcommands: [BenchStorageCommand.self])
}
