import Foundation
import RelayTestKit
import Synchronization

/// `belfry serve` as a process of its own, which can be killed.
final class ServedBelfry: Sendable {
    /// How it is called.
    let client: RelayClient
    private let child: Child
    private let log: LogLines

    private init(child: Child, log: LogLines, client: RelayClient) {
        self.child = child
        self.log = log
        self.client = client
    }

    /// Starts a relay on the file `path`, and returns once it is served.
    ///
    /// - Throws: ``LogEnded`` with what it logged if it ends before.
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

    /// The whole command line of a relay on free ports.
    static func arguments(
        on path: String, for gateway: SampleGateway, _ settings: [String: String] = [:]
    ) -> [String] {
        let all = self.settings(on: path, for: gateway).merging(settings) { _, given in given }
        return ["serve"] + all.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
    }

    /// The settings of a relay on free ports.
    static func settings(on path: String, for gateway: SampleGateway) -> [String: String] {
        [
            "--storage-path": path, "--storage-disk-reserve-megabytes": "0", "--http-port": "0",
            "--admin-port": "0", "--storage-create": "whenMissing",
        ].merging(gateway.settings) { _, given in given }
    }

    /// Ends it as a power cut would.
    func kill() async {
        child.signal(SIGKILL)
        _ = await child.ended()
    }

    /// Sends it a signal that does not end it.
    func signal(_ signal: Int32) { child.signal(signal) }

    /// Asks it to end, and returns its exit code, or the signal below zero.
    func end(_ signal: Int32 = SIGTERM) async -> Int32 {
        child.signal(signal)
        return await child.ended()
    }

    /// The first line that it logs with this text, once it is there.
    @discardableResult
    func line(containing text: String) async throws -> String {
        try await log.line { $0.contains(text) }
    }

    /// What it logged so far.
    var logged: String { log.text }
}

/// What a process logs, line by line.
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

        /// Takes the waiters for `line`.
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
        // A thread that reads, and not dispatch, whose event loop crashes on Linux when a handler
        // is taken away beside the end of what it reads.
        Thread { [weak self] in
            while true {
                let data = reading.availableData
                self?.add(Array(data))
                if data.isEmpty { return }
            }
        }.start()
    }

    var text: String { state.withLock { $0.lines.joined(separator: "\n") } }

    /// The port of a listener, once it is served.
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

    /// The first line that fits, once it is there.
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

/// A process ended without logging what was waited for.
struct LogEnded: Error, CustomStringConvertible {
    /// All that it logged.
    let description: String
}
