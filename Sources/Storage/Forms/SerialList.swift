/// The encoding of ascending serials as differences of seven bits per byte, the lowest first.
package enum SerialList {
    /// Returns the bytes of `serials`, which must ascend.
    package static func encode(_ serials: [UInt64]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(serials.count * 2)
        var last: UInt64 = 0
        for serial in serials {
            LEB128.append(serial - last, to: &bytes)
            last = serial
        }
        return bytes
    }

    /// Returns the serials in `bytes`, or `nil` if they do not ascend or the last one is cut off.
    package static func decode(_ bytes: some Collection<UInt8>) -> [UInt64]? {
        var serials: [UInt64] = []
        var last: UInt64 = 0
        var index = bytes.startIndex
        while index < bytes.endIndex {
            guard let difference = LEB128.read(bytes, at: &index) else { return nil }
            let (serial, overflowed) = last.addingReportingOverflow(difference)
            guard difference > 0, !overflowed else { return nil }
            serials.append(serial)
            last = serial
        }
        return serials
    }
}
