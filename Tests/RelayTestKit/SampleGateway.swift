package import Crypto
package import Foundation
package import GatewaySimulator
package import RelayModel

/// A simulated gateway that trusts one signing key, with its certificate authority in a file.
package struct SampleGateway: Sendable {
    /// The team of the signing key.
    package static let teamID = "TEAM123456"
    /// The ID of the signing key.
    package static let keyID = "KEY1234567"

    /// The simulated gateway.
    package let simulated: SimulatedGateway
    /// The key that containers sign with.
    private let signingKey: P256.Signing.PrivateKey
    /// The path of the certificate authority's file.
    package let caFile: String

    /// The key in PEM form.
    package var signingKeyPEM: String { signingKey.pemRepresentation }

    /// The URL to which relays connect.
    package var url: String { "https://127.0.0.1:\(simulated.port)" }

    /// Starts a gateway that answers by `script`.
    ///
    /// It writes the file of its certificate authority into `directory`.
    package static func start(
        _ script: AnswerScript = AnswerScript(), in directory: URL, port: Int = 0,
        signingKey: P256.Signing.PrivateKey = P256.Signing.PrivateKey()
    ) async throws -> SampleGateway {
        let key = signingKey
        var configuration = SimulatedGateway.Configuration()
        configuration.port = port
        configuration.certificates = .kept(folder: directory.appending(path: "gateway").path)
        configuration.caFile = directory.appending(path: "gateway-ca.pem").path
        configuration.trust = .keys([
            SigningKey(keyID: keyID, teamID: teamID, publicKey: key.publicKey)
        ])
        configuration.environment = .development
        configuration.script = script
        return SampleGateway(
            simulated: try await SimulatedGateway.start(configuration), signingKey: key,
            caFile: configuration.caFile ?? "")
    }

    /// Starts a gateway on the port of this one, which must have stopped.
    package func startAgain(_ script: AnswerScript = AnswerScript()) async throws -> SampleGateway {
        try await Self.start(
            script, in: URL(filePath: caFile).deletingLastPathComponent(), port: simulated.port,
            signingKey: signingKey)
    }

    /// The command-line settings of a relay that pushes to this gateway.
    package var settings: [String: String] {
        ["--apns-url": url, "--apns-ca-file": caFile]
    }

    /// The pushes in order of arrival, one line each.
    ///
    /// A line reads `device: subscription operation record`, and has the status at its end if the
    /// push was refused.
    package var arrivals: [String] { simulated.pushes.map { $0.line } }
}

extension ReceivedPush {
    /// The payload as JSON.
    package var json: JSONValue {
        (try? JSONValue(parsing: payload)) ?? .null
    }

    /// The name of the device, if it is one of a ``SampleContainer``.
    package var deviceName: String { SampleDevice.name(of: deviceToken) ?? deviceToken }

    /// A readable line for the push.
    package var line: String {
        var words = ["\(deviceName):"]
        for body in ["qry", "fet", "met"] {
            guard case .object(let object)? = json.value(at: ["ck", body]) else { continue }
            words.append(body)
            if case .string(let id)? = object["sid"] { words.append(id) }
            if case .integer(let code)? = object["fo"] {
                words.append(["created", "updated", "deleted"][Int(code) - 1])
            }
            if case .string(let name)? = object["rid"] { words.append(name) }
        }
        if let status = answer.status, status != 200 { words.append("(\(status))") }
        return words.joined(separator: " ")
    }
}
