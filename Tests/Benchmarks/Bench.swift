import ArgumentParser
import Foundation
import RelayServer

/// The command `bench`, which measures the rooms, each against a baseline in the same run.
@main
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure the rooms, each against a baseline in the same run.",
        discussion: "Build it for release: swift run -c release bench match --counts 1000000",
        subcommands: [
            BenchDecodeCommand.self, BenchIntakeCommand.self, BenchLiveCommand.self,
            BenchLoadingCommand.self, BenchMatchCommand.self, BenchPredicateCommand.self,
            BenchPushCommand.self, BenchRelayCommand.self,
        ])

    static func main() async {
        // The relay limits the arenas too, so memory is measured as a relay uses it.
        let process = ProcessInfo.processInfo
        ProcessMemory.limitArenas(
            environment: process.environment, processors: process.activeProcessorCount)
        await main(nil)
    }
}
