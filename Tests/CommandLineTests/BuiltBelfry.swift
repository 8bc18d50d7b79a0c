import Foundation
import RelayModel
import RelayTestKit
import Synchronization

/// The executable that was built with these tests.
enum BuiltBelfry {
    /// The executable's path: it is beside the test bundle, which on Linux is the running process.
    static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "belfry")

    /// The exit code and the output of a command that has ended.
    struct Ending: Sendable {
        /// The exit code, or the negated signal number if a signal ended the command.
        let code: Int32
        let output: String
        let complaint: String

        /// Returns a member of the JSON object that the command printed.
        func member(_ name: String) throws -> JSONValue? {
            guard case .object(let object) = try JSONValue(parsing: output) else { return nil }
            return object[name]
        }
    }

    /// Creates a new store with `belfry migrate`; no other command creates one.
    static func makeStore(at path: String) async throws {
        let ending = try await run(["migrate", "--database", path])
        guard ending.code == 0 else { throw LogEnded(description: ending.complaint) }
    }

    /// Runs a command to its end with `input` piped in.
    ///
    /// The command gets no environment variables but the path and those of `environment`.
    static func run(
        _ arguments: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> Ending {
        let folder = try Folder.make()
        let files = ["in", "out", "err"].map { folder.appending(path: $0) }
        try Data(input.utf8).write(to: files[0])
        for file in files.dropFirst() { try Data().write(to: file) }
        let child = Child(arguments, environment: environment)
        let reading = try FileHandle(forReadingFrom: files[0])
        let writing = try files.dropFirst().map { try FileHandle(forWritingTo: $0) }
        try child.run(input: reading, output: writing[0], error: writing[1])
        let code = await child.ended()
        // A process keeps its handles for ever. With some 1,360 open files, starting the next one
        // reads beyond a page of their names (swift-corelibs-foundation), and may crash.
        for handle in [reading] + writing { try handle.close() }
        return Ending(
            code: code, output: try String(contentsOf: files[1], encoding: .utf8),
            complaint: try String(contentsOf: files[2], encoding: .utf8))
    }
}

/// Temporary folders that are removed when the process ends.
enum Folder {
    static func make() throws -> URL {
        URL(filePath: try TemporaryStore().path).deletingLastPathComponent()
    }
}

/// One run of the executable as a child process.
final class Child: Sendable {
    private struct State {
        var code: Int32?
        var waiters: [CheckedContinuation<Int32, Never>] = []
    }

    private let process = Process()
    private let state = Mutex(State())

    /// Prepares a run.
    ///
    /// `openFiles` is the limit that a shell sets beforehand and that the executable cannot raise.
    /// `reader` is a shell command that reads the executable's output.
    init(
        _ arguments: [String], openFiles: Int? = nil, pipedInto reader: String? = nil,
        environment: [String: String]
    ) {
        process.executableURL = BuiltBelfry.executable
        process.arguments = arguments
        if let openFiles {
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments =
                ["-c", "ulimit -n \(openFiles); exec \"$0\" \"$@\"", BuiltBelfry.executable.path]
                + arguments
        }
        if let reader {
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments =
                ["-c", "\"$0\" \"$@\" | \(reader)", BuiltBelfry.executable.path] + arguments
        }
        let inherited = ProcessInfo.processInfo.environment
        process.environment = [
            "PATH": inherited["PATH"] ?? "", "TMPDIR": inherited["TMPDIR"] ?? "/tmp",
        ]
        .merging(environment) { _, given in given }
    }

    func run(input: FileHandle, output: FileHandle, error: Any) throws {
        process.standardInput = input
        process.standardOutput = output
        process.standardError = error
        process.terminationHandler = { [self] process in
            let isSignal = process.terminationReason == .uncaughtSignal
            finish(isSignal ? -process.terminationStatus : process.terminationStatus)
        }
        try process.run()
    }

    private func finish(_ code: Int32) {
        let waiters = state.withLock { state in
            state.code = code
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: code) }
    }

    /// Waits for the end and returns the exit code, or the negated signal number.
    ///
    /// If the waiting task is cancelled, the process is killed.
    func ended() async -> Int32 {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let code: Int32? = state.withLock { state in
                    if state.code == nil { state.waiters.append(waiter) }
                    return state.code
                }
                if let code { waiter.resume(returning: code) }
            }
        } onCancel: {
            signal(SIGKILL)
        }
    }

    func signal(_ signal: Int32) {
        kill(process.processIdentifier, signal)
    }
}
