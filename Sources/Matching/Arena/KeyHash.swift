/// A fast hash of short byte strings under a secret seed.
///
/// It uses two wide multiplications for keys of up to 16 bytes, in the manner of wyhash. Collisions
/// cost time but not correctness. The seed is drawn at random for each index, so that no client can
/// save keys that collide on purpose.
enum KeyHash {
    private static let first: UInt64 = 0xA076_1D64_78BD_642F
    private static let second: UInt64 = 0xE703_7ED1_A0B4_28DB

    @inline(__always)
    private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.low ^ product.high
    }

    @inline(__always)
    private static func eight(_ start: UnsafePointer<UInt8>) -> UInt64 {
        UnsafeRawPointer(start).loadUnaligned(as: UInt64.self)
    }

    /// Hashes `count` bytes to 32 bits, never 0.
    @inline(__always)
    static func hash(_ start: UnsafePointer<UInt8>, _ count: Int, seed: UInt64) -> UInt32 {
        fold(wide(start, count, seed: seed))
    }

    /// Folds 64 bits to 32, never 0.
    @inline(__always)
    static func fold(_ wide: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: wide ^ wide >> 32) | 1 << 31
    }

    /// Hashes `count` bytes to 64 bits.
    @inline(__always)
    static func wide(_ start: UnsafePointer<UInt8>, _ count: Int, seed: UInt64) -> UInt64 {
        var state = seed ^ first
        var left: UInt64 = 0
        var right: UInt64 = 0
        if count <= 16 {
            if count >= 8 {
                left = eight(start)
                right = eight(start + count - 8)
            } else {
                for index in 0..<count { left |= UInt64(start[index]) << UInt64(8 * index) }
            }
        } else {
            var offset = 0
            while count - offset > 16 {
                state = mix(eight(start + offset) ^ second, eight(start + offset + 8) ^ state)
                offset += 16
            }
            left = eight(start + count - 16)
            right = eight(start + count - 8)
        }
        return mix(second ^ UInt64(count), mix(left ^ second, right ^ state))
    }
}
