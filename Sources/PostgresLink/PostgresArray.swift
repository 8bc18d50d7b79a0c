/// The values of one column for many rows, bound as one parameter.
struct PostgresArray: Sendable, Hashable {
    /// The kind of all values.
    let kind: PostgresKind
    private var count: Int32 = 0
    private var hasNull = false
    /// The values in the server's binary format, each after its length.
    private var elements: [UInt8] = []

    init(of kind: PostgresKind) {
        self.kind = kind
    }

    /// The OID of the array's type.
    var type: UInt32 {
        switch kind {
        case .integer: PostgresType.int8Array
        case .real: PostgresType.float8Array
        case .text: PostgresType.textArray
        case .bytes: PostgresType.byteaArray
        }
    }

    /// The name of the array's type in SQL.
    var typeName: String {
        switch kind {
        case .integer: "bigint[]"
        case .real: "float8[]"
        case .text: "text[]"
        case .bytes: "bytea[]"
        }
    }

    /// The size of the values in bytes.
    var byteCount: Int { elements.count }

    /// Appends a value, which must be of the array's kind.
    mutating func append(_ value: PostgresValue) {
        precondition(value.kind == kind)
        count += 1
        if value.isNull {
            hasNull = true
            Self.append(-1, to: &elements)
            return
        }
        let start = elements.count
        Self.append(0, to: &elements)
        value.append(to: &elements)
        let size = UInt32(elements.count - start - 4).bigEndian
        withUnsafeBytes(of: size) { bytes in
            for (index, byte) in bytes.enumerated() { elements[start + index] = byte }
        }
    }

    /// Appends the array in the server's binary format.
    func append(to buffer: inout [UInt8]) {
        // An array without elements has no dimension.
        Self.append(count == 0 ? 0 : 1, to: &buffer)
        Self.append(hasNull ? 1 : 0, to: &buffer)
        Self.append(Int32(bitPattern: kind.type), to: &buffer)
        guard count > 0 else { return }
        Self.append(count, to: &buffer)
        Self.append(1, to: &buffer)
        buffer.append(contentsOf: elements)
    }

    private static func append(_ word: Int32, to buffer: inout [UInt8]) {
        withUnsafeBytes(of: word.bigEndian) { buffer.append(contentsOf: $0) }
    }
}
