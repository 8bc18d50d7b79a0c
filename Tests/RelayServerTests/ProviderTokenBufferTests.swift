import Gateway
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// Provider tokens survive a restart.
@Suite struct ProviderTokenBufferTests {
    private func record(_ number: Int) -> ProviderTokenRecord {
        ProviderTokenRecord(
            key: .init(teamID: "TEAM\(number)", keyID: "KEY", environment: .production),
            token: ConcealedText("token \(number)"), issuedAt: Fixtures.moment)
    }

    @Test func `a token for each key is kept, even after the loop has ended`()
        async throws
    {
        let store = try TemporaryStore().open()
        let logger = Logger.silent
        let buffer = try await ProviderTokenBuffer(registry: store, logger: logger)
        let loop = Task { await buffer.write() }
        loop.cancel()
        await loop.value
        for number in 1...200 { buffer.store.keep(record(number)) }
        await buffer.writeRest()
        let next = try await ProviderTokenBuffer(registry: store, logger: logger)
        for number in 1...200 {
            #expect(next.store.load(record(number).key) == record(number))
        }
        await store.close()
    }
}
