import Foundation
import RelayTestKit
import Synchronization

/// `belfry serve` as a process of its own, which a test can kill.
final class ServedBelfry: Sendable {
    /// The client that calls the relay.
    let client: RelayClient
    private let child: Child
    private let log: LogLines

    private init(child: Child, log: LogLines, client: RelayClient) {
        self.child = child
        self.log = log
        self.client = client
    }

    /// Starts a relay on the file `path`, and returns once it serves.
    ///
    /// - Throws: ``LogEnded`` with the log so far if the process ends first.
    static func start(
        on path: String, for gateway: SampleGateway, _ settings: [String: String] = [:],
        openFiles: Int? = nil
    ) async throws -> ServedBelfry {
        let child = Child(
            arguments(on: path, for: gateway, settings), openFiles: openFiles,
            environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
        let log = LogLines()
        try child.run(
            input: .nullDevice, output: .nullDevice, error: log.pipe)
        do {
            let port = try await log.port(of: "http")
            let client = RelayClient(port: port, adminPort: try await log.port(of: "admin"))
            return ServedBelfry(child: child, log: log, client: client)
        } catch {
            child.signal(SIGKILL)
            throw error
        }
    }

    /// Returns the whole command line of a relay on free ports.
    static func arguments(
        on path: String, for gateway: SampleGateway, _ settings: [String: String] = [:]
    ) -> [String] {
        let all = self.settings(on: path, for: gateway).merging(settings) { _, given in given }
        return ["serve"] + all.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
    }

    /// Returns the settings of a relay on free ports.
    static func settings(on path: String, for gateway: SampleGateway) -> [String: String] {
        [
            "--storage-path": path, "--storage-disk-reserve-megabytes": "0", "--http-port": "0",
            "--admin-port": "0", "--storage-create": "whenMissing",
        ].merging(gateway.settings) { _, given in given }
    }

    /// Kills the process with SIGKILL, as a power cut would end it.
    func kill() async {
        child.signal(SIGKILL)
        _ = await child.ended()
    }

    /// Sends the process a signal that does not end it.
    func signal(_ signal: Int32) { child.signal(signal) }

    /// Asks the process to end, and returns its exit code, or the negated signal number.
    func end(_ signal: Int32 = SIGTERM) async -> Int32 {
        child.signal(signal)
        return await child.ended()
    }

    /// Waits for the first logged line that contains `text`.
    @discardableResult
    func line(containing text: String) async throws -> String {
        try await log.line { $0.contains(text) }
    }

    /// What the process has logged so far.
    var logged: String { log.text }
}

/// The lines that a process logs, as they come.
final class LogLines: Sendable {
    private struct Waiter {
        var isLine: @Sendable (String) -> Bool
        var continuation: CheckedContinuation<String, any Error>
    }

    private struct State {
        var rest: [UInt8] = []
        var lines: [String] = []
        var hasEnded = false
        var waiters: [Waiter] = []

        /// Adds `line`, and removes and returns the waiters that it satisfies.
        mutating func take(_ line: String) -> [Waiter] {
            lines.append(line)
            let due = waiters.filter { $0.isLine(line) }
            waiters.removeAll { $0.isLine(line) }
            return due
        }
    }

    let pipe = Pipe()
    private let state = Mutex(State())

    init() {
        let reading = pipe.fileHandleForReading
        // A thread reads, and not dispatch: on Linux, dispatch's event loop crashes when a handler
        // is removed while the end of its input is being read.
        Thread { [weak self] in
            while true {
                let data = reading.availableData
                self?.add(Array(data))
                if data.isEmpty { return }
            }
        }.start()
    }

    var text: String { state.withLock { $0.lines.joined(separator: "\n") } }

    /// Waits until a listener serves, and returns its port.
    func port(of listener: String) async throws -> Int {
        let line = try await line {
            ($0.contains("listener=\(listener)") || $0.contains("\"listener\":\"\(listener)\""))
                && $0.contains("serving")
        }
        guard let match = line.firstMatch(of: /address(?:=|":")[^ "]*:([0-9]+)/),
            let port = Int(match.1)
        else { throw LogEnded(description: line) }
        return port
    }

    /// Waits for the first line that `isLine` accepts.
    func line(where isLine: @escaping @Sendable (String) -> Bool) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            let known: Result<String, any Error>? = state.withLock { state in
                if let line = state.lines.first(where: isLine) { return .success(line) }
                if state.hasEnded {
                    return .failure(LogEnded(description: state.lines.joined(separator: "\n")))
                }
                state.waiters.append(Waiter(isLine: isLine, continuation: continuation))
                return nil
            }
            if let known { continuation.resume(with: known) }
        }
    }

    private func add(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return end() }
        let due = state.withLock { state in
            state.rest += bytes
            var due: [(Waiter, String)] = []
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: state.rest[..<end], as: UTF8.self)
                state.rest.removeSubrange(...end)
                due += state.take(line).map { ($0, line) }
            }
            return due
        }
        for (waiter, line) in due { waiter.continuation.resume(returning: line) }
    }

    private func end() {
        let (waiters, text) = state.withLock { state in
            state.hasEnded = true
            defer { state.waiters = [] }
            return (state.waiters, state.lines.joined(separator: "\n"))
        }
        for waiter in waiters {
            waiter.continuation.resume(throwing: LogEnded(description: text))
        }
    }
}

/// A process ended without logging the line that a test waited for.
struct LogEnded: Error, CustomStringConvertible {
    /// All that the process logged.
    let description: String
}
