#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Certificates for a server on this machine, as files.
package enum LoopbackCertificates {
    /// Writes `ca.pem`, `server.pem` and `server-key.pem` into the folder at `path`, unless usable
    /// ones exist there.
    ///
    /// They are valid for `localhost`, `127.0.0.1` and `::1`, for two days.
    ///
    /// - Throws: An error of the file system if the folder or a file cannot be written.
    package static func write(to path: String) throws {
        _ = try CertificateAuthority.load(
            from: .kept(folder: path), host: "127.0.0.1", now: MachineClock.now(),
            lifetime: .seconds(2 * 86_400))
    }
}
