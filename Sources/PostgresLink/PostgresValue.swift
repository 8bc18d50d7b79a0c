package import FoundationEssentials

/// A value of a parameter or of a column.
package enum PostgresValue: Sendable, Hashable {
    /// NULL; the server needs to know the kind of a parameter all the same.
    case null(PostgresKind)
    case integer(Int64)
    case real(Double)
    case text(String)
    case bytes(Data)

    /// The kind of the value; NULL has one too.
    var kind: PostgresKind {
        switch self {
        case .null(let kind): kind
        case .integer: .integer
        case .real: .real
        case .text: .text
        case .bytes: .bytes
        }
    }

    /// Whether the value is NULL.
    package var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// Appends the value in the server's binary format.
    func append(to buffer: inout [UInt8]) {
        switch self {
        case .null: break
        case .integer(let value):
            let bits = UInt64(bitPattern: value)
            for shift in stride(from: 56, through: 0, by: -8) {
                buffer.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
            }
        case .real(let value):
            PostgresValue.integer(Int64(bitPattern: value.bitPattern)).append(to: &buffer)
        case .text(let text): Self.append(text, to: &buffer)
        case .bytes(let bytes): buffer.append(contentsOf: bytes)
        }
    }

    /// Appends a text; U+FFFD replaces U+0000, which PostgreSQL does not store.
    private static func append(_ text: String, to buffer: inout [UInt8]) {
        var text = text
        let isCopied = text.withUTF8 { bytes in
            guard !bytes.contains(0) else { return false }
            buffer.append(contentsOf: bytes)
            return true
        }
        guard !isCopied else { return }
        for byte in text.utf8 {
            if byte == 0 { buffer += [0xEF, 0xBF, 0xBD] } else { buffer.append(byte) }
        }
    }
}

/// The kinds of values that can be bound.
package enum PostgresKind: Sendable, Hashable {
    case integer, real, text, bytes

    /// The OID of the type as which values of the kind are bound.
    var type: UInt32 {
        switch self {
        case .integer: PostgresType.int8
        case .real: PostgresType.float8
        case .text: PostgresType.text
        case .bytes: PostgresType.bytea
        }
    }
}

/// The OIDs of the server's built-in types, which never change.
enum PostgresType {
    static let bool: UInt32 = 16
    static let bytea: UInt32 = 17
    static let int8: UInt32 = 20
    static let int2: UInt32 = 21
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let oid: UInt32 = 26
    static let float4: UInt32 = 700
    static let float8: UInt32 = 701
    static let byteaArray: UInt32 = 1001
    static let textArray: UInt32 = 1009
    static let int8Array: UInt32 = 1016
    static let float8Array: UInt32 = 1022
    static let numeric: UInt32 = 1700
    static let void: UInt32 = 2278
}

extension PostgresValue {
    /// Decodes a value in the server's binary format.
    init(_ bytes: some Collection<UInt8>, type: UInt32) {
        switch type {
        case PostgresType.bool: self = .integer(Int64(bytes.first ?? 0))
        case PostgresType.int8: self = .integer(Self.word(bytes))
        case PostgresType.int4:
            self = .integer(Int64(Int32(truncatingIfNeeded: Self.word(bytes))))
        case PostgresType.int2:
            self = .integer(Int64(Int16(truncatingIfNeeded: Self.word(bytes))))
        case PostgresType.oid: self = .integer(Self.word(bytes))
        case PostgresType.float8:
            self = .real(Double(bitPattern: UInt64(bitPattern: Self.word(bytes))))
        case PostgresType.float4:
            self = .real(
                Double(Float(bitPattern: UInt32(truncatingIfNeeded: Self.word(bytes)))))
        case PostgresType.numeric: self = Self.number(Array(bytes))
        case PostgresType.bytea: self = .bytes(Data(bytes))
        case PostgresType.void: self = .null(.text)
        default: self = .text(String(decoding: bytes, as: UTF8.self))
        }
    }

    private static func word(_ bytes: some Collection<UInt8>) -> Int64 {
        Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Decodes a `numeric`, which is the type of sums of whole numbers.
    ///
    /// It consists of groups of four digits, of which the first has the given weight. With a
    /// fraction, or beyond 64 bits, it becomes a real number.
    private static func number(_ bytes: [UInt8]) -> PostgresValue {
        func half(_ index: Int) -> Int {
            index * 2 + 1 < bytes.count
                ? Int(bytes[index * 2]) << 8 | Int(bytes[index * 2 + 1]) : 0
        }
        let groups = half(0)
        let weight = Int(Int16(truncatingIfNeeded: half(1)))
        let isNegative = half(2) == 0x4000
        guard half(2) == 0 || isNegative else { return .real(.nan) }
        var whole: Int64? = 0
        var real = 0.0
        for place in 0..<max(groups, weight + 1) {
            let group = place < groups ? half(4 + place) : 0
            if place <= weight {
                let (scaled, isOver) = (whole ?? 0).multipliedReportingOverflow(by: 10_000)
                let (sum, isBeyond) = scaled.addingReportingOverflow(Int64(group))
                whole = whole == nil || isOver || isBeyond ? nil : sum
                real = real * 10_000 + Double(group)
            } else if group != 0 {
                whole = nil
                var fraction = Double(group)
                for _ in 0..<(place - weight) { fraction /= 10_000 }
                real += fraction
            }
        }
        guard let whole else { return .real(isNegative ? -real : real) }
        return .integer(isNegative ? -whole : whole)
    }
}
