import RelayModel
import RelayTestKit
import Testing

@testable import Storage

/// Large reads wait in a line for one of a few turns.
@Suite struct ReaderLineTests {
    @Test func `a cancelled reader leaves the line`() async throws {
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

    @Test func `containers take turns, the longest waiting first`() {
        let busy = Sample.container
        let quiet = ContainerKey(container: Sample.identifier("quiet"), environment: .production)
        var turns = ReaderTurns(free: 1)
        var atOnce = [turns.ask(1, of: busy, by: .server)]
        for ticket in 2...9 as ClosedRange<UInt64> {
            atOnce.append(turns.ask(ticket, of: busy, by: .server))
        }
        atOnce += [turns.ask(10, of: quiet, by: .server), turns.ask(11, of: quiet, by: .server)]
        #expect(atOnce == [true] + Array(repeating: false, count: 10))
        let withdrawals = [
            turns.withdraw(3, of: busy, by: .server), turns.withdraw(3, of: busy, by: .server),
        ]
        #expect(withdrawals == [true, false])
        // The containers whose turns end, in this order.
        let holders = [busy, busy, quiet, busy, quiet, busy, busy, busy, busy]
        let order = holders.map { turns.finish(of: $0, by: .server) }
        #expect(order == [2, 10, 4, 11, 5, 6, 7, 8, 9])
        #expect(turns.waiting == 0)
        let last = turns.finish(of: busy, by: .server)
        #expect(last == nil)
        #expect(turns.free == 1)
    }

    @Test func `users of one container take turns, and none has more than half of them`() {
        let (mallory, bob) = (Self.user("mallory"), Self.user("bob"))
        var turns = ReaderTurns(free: 6, left: 2)
        var atOnce = (1...5 as ClosedRange<UInt64>).map {
            turns.ask($0, of: Sample.container, by: mallory)
        }
        #expect(atOnce == [true, true, true, false, false])
        atOnce = [
            turns.ask(6, of: Sample.container, by: bob),
            turns.ask(7, of: Sample.container, by: .strangers),
            turns.ask(8, of: Sample.container, by: bob),
        ]
        #expect(atOnce == [true, false, false])
        // Mallory waits longest, but already has half of the turns.
        let first = turns.finish(of: Sample.container, by: bob)
        #expect(first == 7)
        let second = turns.finish(of: Sample.container, by: mallory)
        #expect(second == 4)
        let withdrawn = turns.withdraw(5, of: Sample.container, by: mallory)
        #expect(withdrawn)
        let third = turns.finish(of: Sample.container, by: .strangers)
        #expect(third == 8)
        let fourth = turns.finish(of: Sample.container, by: bob)
        #expect(fourth == nil)
        #expect(turns.waiting == 0)
    }

    @Test func `a container leaves turns for others`() {
        let quiet = ContainerKey(container: Sample.identifier("quiet"), environment: .production)
        var turns = ReaderTurns(free: 4, left: 1)
        let busy = (1...4 as ClosedRange<UInt64>).map {
            turns.ask($0, of: Sample.container, by: .server)
        }
        #expect(busy == [true, true, true, false])
        let atOnce = turns.ask(5, of: quiet, by: .strangers)
        #expect(atOnce)
        let none = turns.finish(of: quiet, by: .strangers)
        #expect(none == nil)
        let next = turns.finish(of: Sample.container, by: .server)
        #expect(next == 4)
    }

    private static func user(_ name: String) -> QueryParty { .user(Sample.identifier(name)) }
}
