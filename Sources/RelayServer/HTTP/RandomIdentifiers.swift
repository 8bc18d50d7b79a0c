import RelayModel

/// Creates names and secrets from unpredictable bytes.
struct RandomIdentifiers: Sendable {
    private let randomBytes: @Sendable (Int) -> [UInt8]

    init(_ randomBytes: @escaping @Sendable (Int) -> [UInt8]) {
        self.randomBytes = randomBytes
    }

    /// Returns a random UUID (version 4, RFC 9562) in lower case.
    func uuid() -> String {
        let bytes = randomBytes(16)
        let high = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let low = bytes[8..<16].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return UUIDBytes(
            high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        ).description
    }

    /// Returns `count` random bytes as hexadecimal digits.
    func digits(bytes count: Int) -> String {
        Hexadecimal.encode(randomBytes(count))
    }
}
