import PostgresLink
import RelayTestKit
import StorageSQL
import Synchronization
import Testing

@testable import StoragePostgreSQL

/// The order in which readings get the connections for reading, on a real server.
@Suite(
    .timeLimit(.minutes(30)),
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ServerReadersTests {
    /// A gate that blocks a reading until the test opens it.
    private final class Gate: Sendable {
        private struct State {
            var isReached = false
            var isOpen = false
        }

        private let state = Mutex(State())
        private let wake: PostgresWake

        init() throws { wake = try #require(PostgresWake()) }

        var isReached: Bool { state.withLock { $0.isReached } }

        func pass() {
            state.withLock { $0.isReached = true }
            while !state.withLock({ $0.isOpen }) { wake.wait(for: .seconds(1)) }
        }

        func open() {
            state.withLock { $0.isOpen = true }
            wake.signal()
        }
    }

    @Test func `a long reading does not delay others beside another connection`() async throws {
        let readers = try ServerReaders(try TestPlace().session(), count: 2)
        defer { readers.end() }
        let (long, other) = (try Gate(), try Gate())
        let first = Task { try await readers.read { _ in long.pass() } }
        #expect(await Turns.yield { long.isReached })
        let second = Task { try await readers.read { _ in other.pass() } }
        #expect(await Turns.yield { other.isReached })
        let short = (1...8).map { number in
            Task { try await readers.read { _ in number } }
        }
        #expect(await Turns.yield { readers.waiting == 8 })
        other.open()
        for (index, task) in short.enumerated() { #expect(try await task.value == index + 1) }
        long.open()
        try await first.value
        try await second.value
        #expect(readers.waiting == 0)
    }

    @Test func `a reading after the end is refused, and earlier ones are answered`()
        async throws
    {
        let readers = try ServerReaders(try TestPlace().session(), count: 1)
        let gate = try Gate()
        let first = Task { try await readers.read { _ in gate.pass() } }
        #expect(await Turns.yield { gate.isReached })
        let second = Task { try await readers.read { _ in 2 } }
        #expect(await Turns.yield { readers.waiting == 1 })
        readers.end()
        await #expect(throws: CancellationError.self) { _ = try await readers.read { _ in 3 } }
        gate.open()
        try await first.value
        #expect(try await second.value == 2)
    }

    @Test func `a cancelled reading leaves the line, and the others keep their places`()
        async throws
    {
        let readers = try ServerReaders(try TestPlace().session(), count: 1)
        defer { readers.end() }
        let gate = try Gate()
        let first = Task { try await readers.read { _ in gate.pass() } }
        #expect(await Turns.yield { gate.isReached })
        let isRead = Mutex(false)
        let second = Task { try await readers.read { _ in isRead.withLock { $0 = true } } }
        #expect(await Turns.yield { readers.waiting == 1 })
        let third = Task { try await readers.read { _ in 3 } }
        #expect(await Turns.yield { readers.waiting == 2 })
        second.cancel()
        // The cancelled reading ends while the one before it still runs.
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(readers.waiting == 1)
        // A reading whose task is already cancelled does not wait at all.
        let fourth = Task {
            withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await readers.read { _ in 4 }
        }
        await #expect(throws: CancellationError.self) { _ = try await fourth.value }
        gate.open()
        try await first.value
        #expect(try await third.value == 3)
        #expect(!isRead.withLock { $0 })
    }
}
