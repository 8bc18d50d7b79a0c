import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// Of clients that send `hello` at the same time, a few are authenticated, and the others wait.
@Suite struct HelloTurnsTests {
    /// The order in which turns were taken.
    private final class Order: Sendable {
        private let numbers = Mutex<[Int]>([])
        var all: [Int] { numbers.withLock { $0 } }
        func add(_ number: Int) { numbers.withLock { $0.append(number) } }
    }

    @Test func `without a free turn clients wait and get turns in order`() async {
        let turns = HelloTurns(2)
        let order = Order()
        await turns.take()
        await turns.take()
        var tasks: [Task<Void, Never>] = []
        for number in 0..<5 {
            tasks.append(
                Task {
                    await turns.take()
                    order.add(number)
                })
            let isWaiting = await Turns.yield { turns.waiting == number + 1 }
            #expect(isWaiting)
        }
        #expect(order.all == [])
        for number in 0..<5 {
            turns.give()
            await tasks[number].value
            #expect(order.all == Array(0...number))
        }
        // All turns are still in use.
        #expect(turns.waiting == 0)
        turns.give()
        await turns.take()
    }

    @Test func `a client that has gone passes its turn to the next`() async throws {
        let turns = HelloTurns(1)
        await turns.take()
        let gone = Task { try await turns.take(unless: { true }) }
        let isWaiting = await Turns.yield { turns.waiting == 1 }
        #expect(isWaiting)
        turns.give()
        await #expect(throws: LiveEnd.self) { try await gone.value }
        try await turns.take(unless: { false })
        #expect(turns.waiting == 0)
    }

    @Test func `all turns can be taken at once, again and again`() async {
        let turns = HelloTurns(3)
        for _ in 0..<100 {
            for _ in 0..<3 { await turns.take() }
            #expect(turns.waiting == 0)
            for _ in 0..<3 { turns.give() }
        }
    }
}
