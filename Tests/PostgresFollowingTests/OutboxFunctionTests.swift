import Testing

@testable import PostgresFollowing

/// The text and the version of an outbox's trigger function; these tests need no server.
@Suite struct OutboxFunctionTests {
    /// A change of the function must raise ``OutboxSQL/functionVersion`` and update the figures
    /// here.
    ///
    /// Otherwise two followers of different versions would each replace the other's function in
    /// turn.
    @Test func `the function's text belongs to its version`() {
        // FNV-1a with 64 bits: it only has to detect a change.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in OutboxSQL.function.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        #expect(OutboxSQL.functionVersion == 2)
        #expect(OutboxSQL.function.utf8.count == 3156)
        #expect(hash == 0xED58_C0B5_14D2_1188, "the function was changed: raise its version")
    }

    /// A follower recognises a later version by the number in the function.
    @Test func `the function contains its version`() {
        let words = "-- Belfry's function, version \(OutboxSQL.functionVersion): "
        #expect(OutboxSQL.functionBody.contains(words))
    }
}
