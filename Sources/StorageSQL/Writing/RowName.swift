import Storage

/// The values that distinguish a row, compared byte by byte as the engine does.
///
/// Texts as such are equal if they are canonically equivalent.
struct RowName: Sendable, Hashable {
    /// The values, as arguments of a statement.
    let arguments: StatementArguments
    private let bytes: [UInt8]

    init(_ arguments: StatementArguments) {
        self.arguments = arguments
        var bytes: [UInt8] = []
        for value in arguments.values {
            let start = bytes.count
            switch value {
            case .integer(let number): Self.append(number, to: &bytes)
            case .real(let number): Self.append(Int64(bitPattern: number.bitPattern), to: &bytes)
            case .text(let text): bytes += text.utf8
            case .bytes(let data): bytes += data
            case .null: bytes.append(0)
            }
            // The size comes after the value, so that no two different names are the same bytes.
            Self.append(Int64(bytes.count - start), to: &bytes)
        }
        self.bytes = bytes
    }

    static func == (one: RowName, other: RowName) -> Bool { one.bytes == other.bytes }

    /// Hashes the bytes at once; an array hashes each by itself.
    func hash(into hasher: inout Hasher) {
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }

    private static func append(_ number: Int64, to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
        }
    }
}
