import Crypto
import FoundationEssentials
import RelayModel
import RelayServer
import Storage

/// The keys, tokens and devices that `belfry dev` invents.
///
/// A kept folder stores them, so that commands copied in one run work in the next.
struct DevSecrets: Codable, Sendable {
    /// A registered device that the printed commands use.
    struct Phone: Codable, Sendable {
        let owner: String
        let name: String
        let token: String
    }

    /// The API token with which the application calls the relay.
    let apiToken: String
    /// The token with which the operator calls the relay.
    let adminToken: String
    /// The token with which the database posts changes.
    let sourceToken: String
    /// The secret that signs user tokens.
    let userSecret: String
    /// The key that signs the provider tokens for the gateway, in PEM form.
    let signingKey: String
    let phones: [Phone]

    /// Makes new secrets.
    init(world: World) {
        func secret(_ bytes: Int = 24) -> String { Hexadecimal.encode(world.randomBytes(bytes)) }
        apiToken = secret()
        adminToken = secret()
        sourceToken = secret()
        userSecret = secret()
        signingKey = P256.Signing.PrivateKey().pemRepresentation
        phones = [
            ("alice", "alices-phone"), ("alice", "alices-tablet"), ("bob", "bobs-phone"),
        ].map { Phone(owner: $0, name: $1, token: secret(32)) }
    }

    /// Returns the secrets of a folder, or makes new ones and stores them there for the folder's
    /// owner alone.
    ///
    /// - Throws: ``DevFailure`` if they cannot be read or written.
    static func kept(in folder: URL, world: World) throws -> DevSecrets {
        let file = folder.appending(path: "dev.json")
        do {
            return try PrivateFile.read(DevSecrets.self, from: file)
        } catch {
            if error.isMissingFile { return try DevSecrets(world: world).kept(at: file) }
            let reason =
                error is DecodingError
                ? "its contents are not what belfry dev writes" : error.systemReason
            throw DevFailure(
                "\(file.path) cannot be read: \(reason); remove that file to begin with new keys")
        }
    }

    private func kept(at file: URL) throws -> DevSecrets {
        do {
            try PrivateFile.write(self, to: file)
            return self
        } catch let fault as PrivateFile.Fault {
            throw DevFailure("\(fault)")
        }
    }
}
