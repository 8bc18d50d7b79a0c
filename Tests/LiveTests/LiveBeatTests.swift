import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import Live

/// How far everything has been told is said to many in few posts.
@Suite struct LiveBeatTests {
    /// Counts what it is told.
    private final class CountingHub: LiveHub {
        private let counts = Mutex<[Int]>([])

        /// How many of each post.
        var all: [Int] { counts.withLock { $0 } }

        func post(_ commands: [LiveCommand]) { counts.withLock { $0.append(commands.count) } }

        func room() async {}
    }

    @Test func `who stands at one place is told together, in pieces`() async throws {
        let scenario = try await LiveScenario()
        let (many, one) = (CountingHub(), CountingHub())
        try await scenario.withEngine { engine in
            let reader = LiveReader.user(Fixtures.identifier("alice"))
            for number in 1...300 as ClosedRange<UInt64> {
                await engine.connect(number, at: many, of: Fixtures.container, as: reader)
            }
            await engine.connect(301, at: one, of: Fixtures.container, as: reader)
            // One of them has gone meanwhile.
            await engine.beat(Array(1...302))
        }
        #expect(many.all == [256, 44])
        #expect(one.all == [1])
    }
}
