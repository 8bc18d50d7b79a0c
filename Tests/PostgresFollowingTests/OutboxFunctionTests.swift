import Testing

@testable import PostgresFollowing

/// What an outbox's function is, and which version of it; no server is needed for that.
@Suite struct OutboxFunctionTests {
    /// Whoever changes the function must raise ``OutboxSQL/functionVersion``, or two followers of
    /// different versions would each put their own in the place of the other's; then set the
    /// figures here anew.
    @Test func `the function's text is the one of its version`() {
        // FNV-1a of 64 bits: it is to be told apart from what it was, and from nothing else.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in OutboxSQL.function.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        #expect(OutboxSQL.functionVersion == 2)
        #expect(OutboxSQL.function.utf8.count == 3156)
        #expect(hash == 0xED58_C0B5_14D2_1188, "the function was changed: raise its version")
    }

    /// A later version is known by the number that stands in the function.
    @Test func `the function says its version`() {
        let words = "-- Belfry's function, version \(OutboxSQL.functionVersion): "
        #expect(OutboxSQL.functionBody.contains(words))
    }
}
