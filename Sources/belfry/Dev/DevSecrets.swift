import Crypto
import FoundationEssentials
import RelayModel
import RelayServer
import Storage

/// What `belfry dev` makes up: keys, tokens and devices.
///
/// A folder that is kept keeps them, so that what was copied from one run works in the next.
struct DevSecrets: Codable, Sendable {
    /// A registered device that the commands speak of.
    struct Phone: Codable, Sendable {
        let owner: String
        let name: String
        let token: String
    }

    /// Calls the relay as the application.
    let apiToken: String
    /// Calls it as its operator.
    let adminToken: String
    /// Posts changes.
    let sourceToken: String
    /// Signs the tokens of users.
    let userSecret: String
    /// Signs the relay's calls of the gateway, in PEM form.
    let signingKey: String
    let phones: [Phone]

    /// Makes everything up.
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

    /// Those of a folder, or new ones, which are kept there for the folder's owner alone.
    ///
    /// - Throws: ``DevFailure`` if what is kept cannot be read, or nothing can be kept.
    static func kept(in folder: URL, world: World) throws -> DevSecrets {
        let file = folder.appending(path: "dev.json")
        do {
            return try PrivateFile.read(DevSecrets.self, from: file)
        } catch {
            if error.isMissingFile { return try DevSecrets(world: world).kept(at: file) }
            let reason =
                error is DecodingError ? "it is not what belfry dev wrote" : error.systemReason
            throw DevFailure(
                "\(file.path) cannot be read: \(reason); with other keys it begins once that file "
                    + "is removed")
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
