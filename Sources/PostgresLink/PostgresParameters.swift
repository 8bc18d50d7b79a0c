/// The parameters of a statement in the server's binary format.
struct PostgresParameters {
    /// The OIDs of their types.
    private(set) var types: [UInt32] = []
    /// The values, and one more byte: a value without bytes at the end still needs an address,
    /// because a null pointer means NULL.
    private var bytes: [UInt8] = []
    /// The size of each parameter; `nil` for NULL.
    private var sizes: [Int?] = []

    /// Encodes single values.
    init(_ values: [PostgresValue]) {
        for value in values {
            let start = bytes.count
            value.append(to: &bytes)
            sizes.append(value.isNull ? nil : bytes.count - start)
            types.append(value.kind.type)
        }
        bytes.append(0)
    }

    /// Encodes one array for each parameter.
    init(_ arrays: [PostgresArray]) {
        bytes.reserveCapacity(arrays.reduce(1) { $0 + $1.byteCount + 20 })
        for array in arrays {
            let start = bytes.count
            array.append(to: &bytes)
            sizes.append(bytes.count - start)
            types.append(array.type)
        }
        bytes.append(0)
    }

    /// The number of parameters.
    var count: Int { sizes.count }

    /// The size of all parameters in bytes.
    var byteCount: Int { bytes.count }

    /// Passes what libpq wants to know of each parameter: its address, its size and its format.
    func withPointers<Outcome>(
        _ body: (
            UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<Int32>, UnsafePointer<Int32>
        ) -> Outcome
    ) -> Outcome {
        let formats = [Int32](repeating: 1, count: count)
        let lengths = sizes.map { Int32($0 ?? 0) }
        return bytes.withUnsafeBytes { raw in
            let base = raw.baseAddress?.assumingMemoryBound(to: CChar.self)
            var start = 0
            let pointers = sizes.map { size in
                defer { start += size ?? 0 }
                return size == nil ? nil : base.map { UnsafePointer($0 + start) }
            }
            return body(pointers, lengths, formats)
        }
    }
}
