import Gateway
import RelayModel
import Storage
import Synchronization

/// The settings of all containers, in memory.
///
/// The follower and the gateway's thread read them for every change and connection, and must not
/// wait for the store.
///
/// Concurrency: a lock around a dictionary. The code that saves settings updates this directory
/// too.
final class ContainerDirectory: Sendable {
    private let settings: Mutex<[ContainerKey: ContainerSettings]>

    init(_ containers: [ContainerSettings]) {
        settings = Mutex(
            Dictionary(containers.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last }))
    }

    subscript(key: ContainerKey) -> ContainerSettings? {
        settings.withLock { $0[key] }
    }

    /// The number of containers.
    var count: Int { settings.withLock { $0.count } }

    func put(_ container: ContainerSettings) {
        settings.withLock { $0[container.key] = container }
    }

    /// Returns the credential that a container uses at the gateway; `nil` if it has no usable one.
    func credential(of key: ContainerKey) -> GatewayCredential? {
        guard let settings = self[key] else { return nil }
        if let certificate = settings.certificate {
            return .certificate(
                GatewayCredential.ClientCertificate(
                    packing: certificate.packing == .pem ? .pem : .pkcs12,
                    bytes: certificate.bytes, passphrase: ConcealedText(certificate.passphrase)))
        }
        return settings.credential.flatMap { credential in
            GatewayCredential.SigningKey(
                teamID: credential.teamID, keyID: credential.keyID,
                privateKeyPEM: ConcealedText(credential.privateKeyPEM))
        }.map(GatewayCredential.signingKey)
    }
}
