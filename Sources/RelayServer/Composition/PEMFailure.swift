import FoundationEssentials
import NIOSSL
import Storage

/// A readable reason why a PEM file cannot be used; NIO's error is only the name of an enumeration
/// case.
package struct PEMFailure: CustomStringConvertible {
    package let description: String

    /// Finds the reason for the file at `path`; its contents are blamed only if the file can be
    /// read.
    package init(_ path: String, _ error: any Error) {
        let files = FileManager.default
        guard files.fileExists(atPath: path) else {
            description = "there is no file \(path)"
            return
        }
        guard files.isReadableFile(atPath: path) else {
            description = "the user that runs this program may not read the file \(path)"
            return
        }
        guard !files.isFolder(path) else {
            description = "the file \(path) cannot be read: it is a folder"
            return
        }
        description =
            switch error as? NIOSSLError {
            case .failedToLoadCertificate?:
                "the file \(path) has no valid certificate in PEM form"
            case .failedToLoadPrivateKey?:
                "the file \(path) has no private key in PEM form without a passphrase"
            default: "the file \(path) cannot be read as PEM: \(error.systemReason)"
            }
    }
}
