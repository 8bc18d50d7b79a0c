import RelayModel
import RelayTestKit
import Testing

@testable import Storage

/// Who reads much waits in a line.
@Suite struct ReaderLineTests {
    @Test func `who is cancelled leaves the line`() async throws {
        let line = ReaderLine(turns: 1)
        let held = AsyncStream.makeStream(of: Void.self)
        let entered = AsyncStream.makeStream(of: Void.self)
        let holder = Task {
            try await line.turn(of: Sample.container) {
                entered.continuation.yield()
                for await _ in held.stream.prefix(1) {}
            }
        }
        for await _ in entered.stream.prefix(1) {}
        let waiting = Task { try await line.turn(of: Sample.container) {} }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        held.continuation.yield()
        try await holder.value
        try await line.turn(of: Sample.container) {}
    }

    @Test func `containers take turns, whoever waits longest first`() {
        let busy = Sample.container
        let quiet = ContainerKey(container: Sample.identifier("quiet"), environment: .production)
        var turns = ReaderTurns(free: 1)
        var atOnce = [turns.ask(1, of: busy)]
        for ticket in 2...9 as ClosedRange<UInt64> { atOnce.append(turns.ask(ticket, of: busy)) }
        atOnce += [turns.ask(10, of: quiet), turns.ask(11, of: quiet)]
        #expect(atOnce == [true] + Array(repeating: false, count: 10))
        let withdrawals = [turns.withdraw(3, of: busy), turns.withdraw(3, of: busy)]
        #expect(withdrawals == [true, false])
        let order = (0..<9).map { _ in turns.finish() }
        #expect(order == [2, 10, 4, 11, 5, 6, 7, 8, 9])
        #expect(turns.waiting == 0)
        let last = turns.finish()
        #expect(last == nil)
        #expect(turns.free == 1)
    }
}
