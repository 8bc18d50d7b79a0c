import Glibc

/// Writes to files that are open, and leaves in `errno` why it did not.
struct FileWriter: Sendable {
    /// The system's call, which returns how much it wrote, or less than zero; tests have one that
    /// fails as a full disk does.
    var call: @Sendable (Int32, ArraySlice<UInt8>) -> Int = { file, bytes in
        unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
    }

    /// Writes all of `bytes`; returns whether it did.
    func write(_ bytes: [UInt8], to file: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = call(file, rest)
            if count < 0 {
                guard errno == EINTR else { return false }
            } else {
                rest = rest.dropFirst(count)
            }
        }
        return true
    }
}
