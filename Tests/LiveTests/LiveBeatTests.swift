import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import Live

/// The position up to which everything was told reaches many clients in few posts.
@Suite struct LiveBeatTests {
    /// A hub that counts the commands of each post.
    private final class CountingHub: LiveHub {
        private let counts = Mutex<[Int]>([])

        /// The number of commands in each post.
        var all: [Int] { counts.withLock { $0 } }

        func post(_ commands: [LiveCommand]) { counts.withLock { $0.append(commands.count) } }

        func room() async {}
    }

    @Test func `clients at the same position are told together, in pieces`() async throws {
        let scenario = try await LiveScenario()
        let (many, one) = (CountingHub(), CountingHub())
        try await scenario.withEngine { engine in
            let reader = LiveReader.user(Fixtures.identifier("alice"))
            for number in 1...300 as ClosedRange<UInt64> {
                await engine.connect(number, at: many, of: Fixtures.container, as: reader)
            }
            await engine.connect(301, at: one, of: Fixtures.container, as: reader)
            // The last number belongs to no connected client.
            await engine.beat(Array(1...302))
        }
        #expect(many.all == [256, 44])
        #expect(one.all == [1])
    }
}
