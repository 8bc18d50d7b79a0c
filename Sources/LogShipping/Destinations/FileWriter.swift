import Glibc

/// Writes to open files.
///
/// After a failure, `errno` has the reason.
struct FileWriter: Sendable {
    /// The system call, which returns the number of written bytes or a negative number.
    ///
    /// Tests replace it to simulate a full disk.
    var call: @Sendable (Int32, ArraySlice<UInt8>) -> Int = { file, bytes in
        unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
    }

    /// Writes all of `bytes`; returns whether it succeeded.
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
