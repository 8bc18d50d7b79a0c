import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import RelayServer

/// What is done beside the walk, whatever fails of it.
struct UpkeepTests {
    /// As what a server refuses, which is no error of the store's kind.
    private struct OddFailure: Error {}

    @Test func `a failure of any kind ends no loop`() async throws {
        let clock = TestClock()
        var world = World.real
        world.clock = clock
        let store = try TemporaryStore().open()
        let upkeep = Upkeep(
            store, settings: Upkeep.Settings(), world: world, logger: Logger(label: "test"),
            progress: { .start })
        let count = Mutex(0)
        let loop = Task {
            try await upkeep.every(.seconds(1)) {
                count.withLock { $0 += 1 }
                throw OddFailure()
            }
        }
        let goesOn = await clock.advance(by: .seconds(1)) { count.withLock { $0 } >= 3 }
        #expect(goesOn)
        loop.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await store.close()
    }
}
