import Crypto
import RelayModel

/// Standard Webhooks 1.0: the signature covers the ID, the timestamp and the raw body.
///
/// The standard is based on Svix. Svix and its users sign in the same way but use their own header
/// names (`svix-id`), which are read if the standard's are absent.
package enum StandardWebhooks {
    /// The header with the message's ID, which is the same on every attempt.
    package static let idHeader = "webhook-id"
    /// The header with the time of this attempt, in whole seconds since 1970.
    package static let timestampHeader = "webhook-timestamp"
    /// The header with one or more signatures, separated by spaces.
    package static let signatureHeader = "webhook-signature"
    /// The header with the message's ID under Svix's own name.
    package static let svixIDHeader = "svix-id"
    /// The allowed lengths of a symmetric key, in bytes.
    package static let keyBytes = 24...64

    /// The signed bytes, and the signatures that came with them.
    struct Signed {
        let bytes: [UInt8]
        /// The header with the signatures.
        let header: String
        let signatures: [(version: Substring, value: [UInt8])]
    }

    /// Returns the value of `webhook-signature` that a sender with `secret` (`whsec_…`) would send,
    /// or `nil` if the secret is malformed.
    package static func signature(
        id: String, timestamp: String, body: [UInt8], secret: String
    ) -> String? {
        guard case .symmetric(let key) = StandardWebhooksKey(secret) else { return nil }
        let bytes = signedBytes(id: id, timestamp: timestamp, body: body)
        let code = HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key))
        return "v1,\(Base64.encode(Array(code)))"
    }

    static func signed(
        _ request: WebhookRequest, tolerance: Duration
    ) throws(VerificationError) -> Signed {
        let headers = request.headers
        // If any of the standard's headers is present, the request must be signed under the
        // standard's names.
        let isSvix = [idHeader, timestampHeader, signatureHeader].allSatisfy { headers[$0] == nil }
        let names: (id: String, timestamp: String, signature: String) =
            isSvix && headers[svixIDHeader] != nil
            ? (svixIDHeader, "svix-timestamp", "svix-signature")
            : (idHeader, timestampHeader, signatureHeader)
        let id = try headers.required(names.id)
        // With a dot, ID and timestamp could be divided in two ways.
        guard !id.contains("."), id.utf8.count <= Limits.maximumNameBytes else {
            throw .malformedHeader(names.id, rule: "1 to 255 bytes without a dot")
        }
        let signature = try headers.required(names.signature)
        let timestamp = try headers.checkTimestamp(
            names.timestamp, now: request.receivedAt, tolerance: tolerance)
        return Signed(
            bytes: signedBytes(id: id, timestamp: timestamp, body: request.body),
            header: names.signature, signatures: signatures(in: signature))
    }

    static func fittingSecret(
        _ signed: Signed, among secrets: [SourceSecret]
    ) throws(VerificationError) -> Int {
        for (index, secret) in secrets.enumerated() {
            guard let key = StandardWebhooksKey(secret.value) else { continue }
            if key.fits(signed.signatures, of: signed.bytes) { return index }
        }
        guard signed.signatures.contains(where: { isWellFormed($0.version, $0.value) }) else {
            throw .malformedHeader(signed.header, rule: signatureRule)
        }
        throw .signatureMismatch(header: signed.header)
    }

    static let signatureRule = "\"v1,\" and an HMAC-SHA256 in Base64"

    /// Returns whether a signature has the right form for some key.
    private static func isWellFormed(_ version: Substring, _ value: [UInt8]) -> Bool {
        version == "v1" && value.count == SHA256.byteCount || version == "v1a" && value.count == 64
    }

    private static func signedBytes(id: String, timestamp: String, body: [UInt8]) -> [UInt8] {
        Array("\(id).\(timestamp).".utf8) + body
    }

    /// Returns the first signatures.
    ///
    /// A hostile header may list thousands; a sender that rotates its secret lists two.
    private static func signatures(in header: String) -> [(version: Substring, value: [UInt8])] {
        header.split(separator: " ").prefix(8).compactMap { entry in
            // If a header occurred twice, its values were joined by a comma and a space.
            let parts = entry.split(separator: ",", maxSplits: 1)
            guard parts.count == 2, let value = Base64.decode(parts[1].trimmingCommas) else {
                return nil
            }
            return (version: parts[0], value: value)
        }
    }
}

/// A key of Standard Webhooks, whose prefix tells its kind.
enum StandardWebhooksKey {
    /// `whsec_…`, for HMAC-SHA256.
    case symmetric([UInt8])
    /// `whpk_…`, an ed25519 public key.
    case verifying([UInt8])

    /// Parses a key, or returns `nil` if the prefix is unknown or the length not allowed.
    init?(_ text: String) {
        if text.hasPrefix("whsec_"), let key = Base64.decode(text.dropFirst("whsec_".count)),
            StandardWebhooks.keyBytes.contains(key.count)
        {
            self = .symmetric(key)
        } else if text.hasPrefix("whpk_"), let key = Base64.decode(text.dropFirst("whpk_".count)),
            key.count == 32
        {
            self = .verifying(key)
        } else {
            return nil
        }
    }

    /// Returns whether one of `signatures` is this key's signature of `bytes`.
    ///
    /// Unknown versions never fit. The bytes are hashed once for all signatures of a shared secret,
    /// because anybody may send megabytes under eight of them.
    func fits(
        _ signatures: [(version: Substring, value: [UInt8])], of bytes: [UInt8]
    ) -> Bool {
        switch self {
        case .symmetric(let key):
            let code = HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key))
            let own = Array(code)
            return signatures.contains { $0.version == "v1" && ConstantTime.equal(own, $0.value) }
        case .verifying(let key):
            let publicKey = try? Curve25519.Signing.PublicKey(rawRepresentation: key)
            return signatures.contains { version, value in
                version == "v1a" && publicKey?.isValidSignature(value, for: bytes) == true
            }
        }
    }
}

extension Substring {
    /// This text without trailing commas.
    var trimmingCommas: Substring {
        var rest = self
        while rest.last == "," { rest.removeLast() }
        return rest
    }
}
