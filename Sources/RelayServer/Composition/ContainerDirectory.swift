import Gateway
import RelayModel
import Storage
import Synchronization

/// The settings of all containers, from memory: the follower and the gateway's thread ask for them
/// at every change and connection, and must not wait for the store.
///
/// A lock around a dictionary; whoever saves settings puts them here too.
final class ContainerDirectory: Sendable {
    private let settings: Mutex<[ContainerKey: ContainerSettings]>

    init(_ containers: [ContainerSettings]) {
        settings = Mutex(
            Dictionary(containers.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last }))
    }

    subscript(key: ContainerKey) -> ContainerSettings? {
        settings.withLock { $0[key] }
    }

    func put(_ container: ContainerSettings) {
        settings.withLock { $0[container.key] = container }
    }

    /// What a container shows to the gateway; `nil` if it has no usable credential.
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
