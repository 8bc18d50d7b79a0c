import FoundationEssentials
import NIOSSL
import Storage

/// Why a file cannot be used as one in PEM form, for people: NIO names a case of an enumeration.
package struct PEMFailure: CustomStringConvertible {
    package let description: String

    /// What is wrong with the file at `path`: what it has is only at fault where it can be read.
    package init(_ path: String, _ error: any Error) {
        let files = FileManager.default
        guard files.fileExists(atPath: path) else {
            description = "there is no file \(path)"
            return
        }
        guard files.isReadableFile(atPath: path) else {
            description = "the file \(path) cannot be read by the user that runs this"
            return
        }
        guard !files.isFolder(path) else {
            description = "the file \(path) cannot be read: it is a folder"
            return
        }
        description =
            switch error as? NIOSSLError {
            case .failedToLoadCertificate?:
                "the file \(path) holds no certificate in PEM form, or one that is damaged"
            case .failedToLoadPrivateKey?:
                "the file \(path) holds no private key in PEM form that needs no passphrase"
            default: "the file \(path) cannot be read as PEM: \(error.systemReason)"
            }
    }
}
