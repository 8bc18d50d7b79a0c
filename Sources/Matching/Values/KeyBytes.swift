/// The bytes of keys, which saving and matching must form in the same way.
enum KeyBytes {
    /// The length up to which values are complete keys.
    ///
    /// The key of a longer value is its beginning, its length and a digest, and rows must verify
    /// the value.
    static let longest: UInt32 = 120
    /// The number of bytes of a longer value in its key.
    static let kept = 104
    /// The longest prefix that is a key; longer prefixes are cut and need verification.
    static let longestPrefix = 63

    @inline(__always)
    static func seed(_ seed: UInt64, _ dimension: UInt32) -> UInt64 {
        seed &+ UInt64(dimension + 1) &* 0x9E37_79B9_7F4A_7C15
    }

    static func append(_ compartment: UInt32, to bytes: inout GrowingBuffer<UInt8>) {
        for shift in [0, 8, 16, 24] as [UInt32] {
            bytes.append(UInt8(truncatingIfNeeded: compartment >> shift))
        }
    }

    /// Appends the key of a value whose bytes are in `source`, which may be the memory of `bytes`
    /// itself.
    static func append(
        _ slot: FieldSlot, from source: UnsafeMutablePointer<UInt8>,
        to bytes: inout GrowingBuffer<UInt8>
    ) {
        let isSame = source == bytes.base
        bytes.reserve(Int(longest) + 16)
        let start = (isSame ? bytes.base : source) + Int(slot.offset)
        if slot.length <= longest {
            bytes.append(from: start, count: Int(slot.length))
            return
        }
        let digest = KeyHash.wide(start, Int(slot.length), seed: 0x5EED)
        bytes.append(from: start, count: kept)
        for word in [UInt64(slot.length), digest] {
            for shift in stride(from: 0, to: 64, by: 8) as StrideTo<UInt64> {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
    }
}
