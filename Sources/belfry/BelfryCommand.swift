import ArgumentParser
import FoundationEssentials
import Glibc
import RelayServer
import Storage

@main
struct BelfryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "belfry",
        abstract: "CloudKit-style subscriptions for any database.",
        version: BuildStamp.current.description,
        subcommands: [
            DevCommand.self, ServeCommand.self, FollowCommand.self, TriggerCommand.self,
            ListenCommand.self,
        ]
            + AdministrationCommands.all
            + [
                PredicateCommand.self, MatchCommand.self, GatewayCommand.self, BenchCommand.self,
            ])

    static func main() async {
        let process = ProcessInfo.processInfo
        ProcessMemory.limitArenas(
            environment: process.environment, processors: process.activeProcessorCount)
        ProcessLog.own.bootstrap()
        let given = Array(process.arguments.dropFirst())
        // The settings of `serve` are not options of the parser, whose help would omit them.
        let arguments = given == ["help", "serve"] ? ["serve", "--help"] : given
        if let slip = CommandSlip(arguments, below: Self.self) {
            try? StandardStreams.write(Array(ShownText.plain("\(slip)").utf8), .error)
            exit(withError: ExitCode.validationFailure)
        }
        do {
            try await CommandFailure.told { try await run(arguments) }
        } catch {
            exit(withError: error)
        }
    }

    /// Runs a command.
    ///
    /// Invalid options are reported with a reference to the command's own help.
    @concurrent private static func run(_ arguments: [String]) async throws {
        var command = try await asyncParseAsRoot(arguments)
        do {
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            try StandardStreams.flush()
        } catch let error as ValidationError {
            let path = CommandSlip.path(arguments, below: Self.self)
            let text = "Error: \(error.message)\n  See '\(path) --help' for more information.\n"
            try? StandardStreams.write(Array(ShownText.plain(text).utf8), .error)
            throw ExitCode.validationFailure
        } catch let error as POSIXError where error.code == .EPIPE {
            // The reader, such as `head`, has closed the pipe.
            return
        } catch let error as POSIXError {
            // Not ignored: the lost output may contain a secret that is shown only once.
            throw CommandFailure(
                .input, "reading its input or writing its output failed: \(error.systemReason)")
        }
    }
}

/// Benchmarks for operators, on a machine that has only the executable.
///
/// They measure the disk, which limits how many changes the relay can accept. The other benchmarks
/// are a separate program in `Tests/Benchmarks`.
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure what this machine's disk can take in.",
        subcommands: [BenchStorageCommand.self])
}
