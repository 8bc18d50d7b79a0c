import RelayModel

/// Names and secrets made of unpredictable bytes.
struct RandomIdentifiers: Sendable {
    private let randomBytes: @Sendable (Int) -> [UInt8]

    init(_ randomBytes: @escaping @Sendable (Int) -> [UInt8]) {
        self.randomBytes = randomBytes
    }

    /// A random UUID (version 4, RFC 9562) in lower case.
    func uuid() -> String {
        var bytes = randomBytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        guard let uuid = UUIDBytes(bytes: bytes) else {
            preconditionFailure("16 random bytes were asked for, and there are not 16")
        }
        return uuid.description
    }

    /// `count` random bytes as hexadecimal digits.
    func digits(bytes count: Int) -> String {
        Hexadecimal.encode(randomBytes(count))
    }
}
