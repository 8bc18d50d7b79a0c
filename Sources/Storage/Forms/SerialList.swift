/// Ascending serials in compact form: differences of seven bits per byte, the lowest first.
package enum SerialList {
    /// The bytes of `serials`, which ascend.
    package static func encode(_ serials: [UInt64]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(serials.count * 2)
        var last: UInt64 = 0
        for serial in serials {
            var rest = serial - last
            last = serial
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        return bytes
    }

    /// The serials in `bytes`; `nil` if they do not ascend or the last one is cut off.
    package static func decode(_ bytes: some Sequence<UInt8>) -> [UInt64]? {
        var serials: [UInt64] = []
        var last: UInt64 = 0
        var value: UInt64 = 0
        var shift: UInt64 = 0
        for byte in bytes {
            guard shift < 64 else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            shift += 7
            guard byte < 0x80 else { continue }
            let (serial, overflowed) = last.addingReportingOverflow(value)
            guard value > 0, !overflowed else { return nil }
            serials.append(serial)
            last = serial
            value = 0
            shift = 0
        }
        return shift == 0 ? serials : nil
    }
}
