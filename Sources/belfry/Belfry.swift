import ArgumentParser
import Foundation

@main
struct Belfry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "belfry",
        abstract: "CloudKit-style subscriptions for any database.",
        subcommands: [DevCommand.self, ServeCommand.self] + AdministrationCommands.all
            + [
                PredicateCommand.self, MatchCommand.self, GatewayCommand.self, BenchCommand.self,
            ])

    static func main() async {
        let process = ProcessInfo.processInfo
        MemoryArenas.limit(
            environment: process.environment, processors: process.activeProcessorCount)
        OneLineStream.bootstrap()
        await main(nil)
    }
}

struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure the rooms, each against a baseline in the same run.",
        subcommands: [
            BenchDecodeCommand.self, BenchIntakeCommand.self, BenchLoadingCommand.self,
            BenchMatchCommand.self, BenchPredicateCommand.self, BenchPushCommand.self,
            BenchRelayCommand.self, BenchStorageCommand.self,
        ])
}
