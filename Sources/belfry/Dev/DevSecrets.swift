import Crypto
import Foundation
import RelayModel
import RelayServer

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
    /// - Throws: ``DevFailure`` if what is kept cannot be read.
    static func kept(in folder: URL, world: World) throws -> DevSecrets {
        let file = folder.appending(path: "dev.json")
        do {
            return try PrivateFile.read(DevSecrets.self, from: file)
        } catch CocoaError.fileReadNoSuchFile {
            let secrets = DevSecrets(world: world)
            try PrivateFile.write(secrets, to: file)
            return secrets
        } catch {
            throw DevFailure("\(file.path) cannot be read; remove it for new keys: \(error)")
        }
    }
}

/// A small file of JSON that is for its owner alone.
enum PrivateFile {
    /// Writes the file whole or not at all.
    static func write(_ value: some Encodable, to file: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let draft = file.appendingPathExtension("new")
        try? FileManager.default.removeItem(at: draft)
        guard
            FileManager.default.createFile(
                atPath: draft.path, contents: try encoder.encode(value),
                attributes: [.posixPermissions: 0o600])
        else { throw DevFailure("\(draft.path) cannot be written") }
        guard unsafe rename(draft.path, file.path) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw DevFailure("\(file.path) cannot be written: \(reason)")
        }
    }

    /// Reads the file.
    ///
    /// - Throws: `CocoaError.fileReadNoSuchFile` if it is not there, and another error if it is
    ///   something else or another user's.
    static func read<Value: Decodable>(_ type: Value.Type, from file: URL) throws -> Value {
        let data = try Data(contentsOf: file)
        var status = stat()
        guard unsafe stat(file.path, &status) == 0, status.st_uid == geteuid(),
            status.st_mode & 0o077 == 0
        else { throw DevFailure("\(file.path) is not for this user alone") }
        return try JSONDecoder().decode(type, from: data)
    }
}
