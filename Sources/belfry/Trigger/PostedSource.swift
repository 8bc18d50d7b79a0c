import ChangeSources
import FoundationEssentials
import RelayModel
import RelayServer

/// A change source of a running relay that a command posts to.
struct PostedSource: Sendable {
    let url: String
    let secret: String

    /// Returns the source named by options or variables, or that of a running `belfry dev`.
    ///
    /// - Throws: ``CommandFailure`` with what is missing or invalid.
    static func found(
        url: String?, secret: String?, flags: (url: String, secret: String),
        _ environment: [String: String]
    ) throws -> PostedSource {
        let named = url ?? environment["BELFRY_SOURCE_URL"]
        let secret = secret ?? environment["BELFRY_SOURCE_SECRET"]
        // Probably the empty output of an earlier command.
        if named?.isEmpty == true {
            throw CommandFailure(
                .configuration,
                "the URL of the change source is empty: give the one that belfry sources show "
                    + "prints, with \(flags.url) or BELFRY_SOURCE_URL")
        }
        if secret?.isEmpty == true {
            throw CommandFailure(
                .configuration,
                "the secret of the change source is empty: give the one that was shown when it was "
                    + "made, with \(flags.secret) or BELFRY_SOURCE_SECRET; belfry sources rotate "
                    + "makes a new one")
        }
        if secret?.isHeaderValue == false {
            throw CommandFailure(
                .configuration,
                "the secret of the change source contains a line break: give it without one, with "
                    + "\(flags.secret) or BELFRY_SOURCE_SECRET")
        }
        if let secret, secret.hasPrefix("whsec_"), signature(by: secret, of: []) == nil {
            throw CommandFailure(
                .configuration,
                "the secret of the change source begins with whsec_, but is incomplete: give all "
                    + "of what was shown, with \(flags.secret) or BELFRY_SOURCE_SECRET")
        }
        if let named {
            guard let parts = URL(string: named), parts.isCallable,
                parts.path().contains("/changes/1/")
            else {
                throw CommandFailure(
                    .configuration,
                    "\(named) is not the URL of a change source, as belfry sources show prints it: "
                        + "http(s)://HOST/changes/1/CONTAINER/ENVIRONMENT/SOURCE"
                        + (named.contains("/changes/1/") ? named.meantURL : ""))
            }
            guard let secret else {
                throw CommandFailure(
                    .configuration,
                    "no secret: give \(flags.secret), or set BELFRY_SOURCE_SECRET"
                        + slip(in: environment))
            }
            return PostedSource(url: named, secret: secret)
        }
        guard let dev = DevAddress.find(environment), let url = dev.sourceURL,
            let token = dev.sourceToken
        else {
            throw CommandFailure(
                .configuration,
                "no belfry dev is running: start one, or name a change source with \(flags.url) "
                    + "and \(flags.secret)" + slip(in: environment))
        }
        return PostedSource(url: url, secret: secret ?? token)
    }

    /// Returns a hint about a variable that was probably meant to name the source; empty without
    /// one.
    private static func slip(in environment: [String: String]) -> String {
        let names = ["BELFRY_SOURCE_URL", "BELFRY_SOURCE_SECRET"]
        for name in environment.keys.sorted() where name.hasPrefix("BELFRY_") {
            guard let meant = NearestWord.to(name, among: names), meant != name else { continue }
            return "; \(name) is not a setting: did you mean \(meant)?"
        }
        return ""
    }

    /// Returns the headers that authenticate `body`: a Standard Webhooks signature if the secret is
    /// a key for one, or else the secret itself.
    func proof(of body: [UInt8]) -> [(String, String)] {
        Self.signature(by: secret, of: body) ?? [("Authorization", "Bearer \(secret)")]
    }

    /// Returns the headers of a signature by `secret`; `nil` if it is not a Standard Webhooks key.
    private static func signature(by secret: String, of body: [UInt8]) -> [(String, String)]? {
        let id = "trigger_\(Hexadecimal.encode(World.real.randomBytes(12)))"
        let timestamp = String(World.real.now().seconds)
        guard
            let signature = StandardWebhooks.signature(
                id: id, timestamp: timestamp, body: body, secret: secret)
        else { return nil }
        return [
            (StandardWebhooks.idHeader, id), (StandardWebhooks.timestampHeader, timestamp),
            (StandardWebhooks.signatureHeader, signature),
        ]
    }
}
