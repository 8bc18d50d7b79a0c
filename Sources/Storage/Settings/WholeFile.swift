package import FoundationEssentials
import Glibc

/// A file that is read to its end, whatever it is.
///
/// `Data(contentsOf:)` refuses what is no plain file, and so what a shell hands over: `<(…)` and
/// `/dev/stdin` are pipes.
package enum WholeFile {
    private static let pieceBytes = 64 * 1024

    /// What is in the file at `path`, which has an end: `/dev/zero` has none.
    ///
    /// - Throws: `POSIXError` if it cannot be read, as a folder cannot, or has more than `most`
    ///   bytes.
    package static func bytes(at path: String, atMost most: Int) throws(POSIXError) -> [UInt8] {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        while true {
            let count = Glibc.read(descriptor, &piece, pieceBytes)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += piece[..<count]
                guard bytes.count <= most else { throw POSIXError(.EFBIG) }
            } else if errno != EINTR {
                throw failure
            }
        }
    }

    /// Why the last call of the system failed.
    private static var failure: POSIXError {
        POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
}
