import Crypto
import RelayModel

/// How a sender's signature is composed, for every scheme without a standard.
///
/// Appwrite, Airtable, Wilddog and many others differ only in these values.
package struct SignatureRecipe: Sendable, Hashable {
    /// A part of what the signature covers.
    ///
    /// The parts are concatenated in order, with only literals as separators.
    ///
    /// Senders choose the separators. If headers describe what happened, the recipe is checked for
    /// a ``SignatureSeam``.
    package enum Part: Sendable, Hashable {
        /// A fixed text.
        case literal(String)
        /// The value of a header, which is required.
        case header(String)
        /// The URL as configured at the sender, or else the requested URL.
        case url
        /// The raw body.
        case body
        /// The secret itself, for digests without a key.
        case secret
    }

    /// The algorithm of the signature.
    package enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// HMAC with SHA-256.
        case hmacSHA256 = "hmac-sha256"
        /// HMAC with SHA-1, for senders that support nothing better.
        case hmacSHA1 = "hmac-sha1"
        /// SHA-256 without a key. One of the parts must be the secret.
        case sha256
        /// Ed25519. The secret is the public key.
        case ed25519
    }

    /// How bytes are encoded as text.
    package enum Encoding: String, Sendable, Hashable, CaseIterable {
        /// The bytes of the text itself; allowed only for keys.
        case utf8
        /// Base64, including the URL-safe alphabet.
        case base64
        /// Hexadecimal digits.
        case hex
    }

    /// The header with the signature.
    package var header: String
    /// The text before the signature in that header.
    package var prefix: String
    /// The signed parts, in order.
    package var parts: [Part]
    /// The algorithm.
    package var algorithm: Algorithm
    /// How the secret encodes the key.
    package var keyEncoding: Encoding
    /// How the signature is encoded.
    package var output: Encoding
    /// The URL as configured at the sender.
    ///
    /// Behind a proxy, that of the request differs.
    package var url: String?
    /// The header with a time in whole seconds since 1970, if the signature covers one.
    package var timestampHeader: String?
    /// The maximum difference between that time and the relay's clock.
    package var tolerance: Duration

    package init(
        header: String, prefix: String = "", parts: [Part], algorithm: Algorithm,
        keyEncoding: Encoding = .utf8, output: Encoding, url: String? = nil,
        timestampHeader: String? = nil, tolerance: Duration = Limits.webhookSignatureTolerance
    ) {
        self.header = header
        self.prefix = prefix
        self.parts = parts
        self.algorithm = algorithm
        self.keyEncoding = keyEncoding
        self.output = output
        self.url = url
        self.timestampHeader = timestampHeader
        self.tolerance = tolerance
    }

    /// Airtable's signature: HMAC-SHA256 of the body with a key in base64, in hexadecimal digits.
    package static let airtable = SignatureRecipe(
        header: "X-Airtable-Content-MAC", prefix: "hmac-sha256=", parts: [.body],
        algorithm: .hmacSHA256, keyEncoding: .base64, output: .hex)

    /// Returns Appwrite's signature: HMAC-SHA1 of the URL as configured at Appwrite and the body,
    /// in base64.
    ///
    /// If `url` is `nil`, the requested URL is used.
    package static func appwrite(url: String?) -> SignatureRecipe {
        SignatureRecipe(
            header: "X-Appwrite-Webhook-Signature", parts: [.url, .body], algorithm: .hmacSHA1,
            output: .base64, url: url)
    }
}

extension SignatureRecipe {
    func fittingSecret(
        _ request: WebhookRequest, among secrets: [SourceSecret]
    ) throws(VerificationError) -> Int {
        let sent = try signature(in: request.headers)
        if let timestampHeader {
            _ = try request.headers.checkTimestamp(
                timestampHeader, now: request.receivedAt, tolerance: tolerance)
        }
        for (index, secret) in secrets.enumerated() {
            guard let key = keyEncoding.bytes(of: secret.value) else { continue }
            let bytes = try signedBytes(request, secret: secret.value)
            if fits(sent, bytes: bytes, key: key) { return index }
        }
        throw .signatureMismatch(header: header)
    }

    private func signature(in headers: WebhookHeaders) throws(VerificationError) -> [UInt8] {
        let value = try headers.required(header)
        guard value.hasPrefix(prefix),
            let bytes = output.bytes(of: String(value.dropFirst(prefix.count)))
        else {
            throw .malformedHeader(header, rule: "\"\(prefix)\" and a signature in \(output)")
        }
        return bytes
    }

    private func signedBytes(
        _ request: WebhookRequest, secret: String
    ) throws(VerificationError) -> [UInt8] {
        var bytes: [UInt8] = []
        for part in parts {
            switch part {
            case .literal(let text): bytes.append(contentsOf: text.utf8)
            case .header(let name):
                bytes.append(contentsOf: try request.headers.required(name).utf8)
            case .url: bytes.append(contentsOf: (url ?? request.url).utf8)
            case .body: bytes.append(contentsOf: request.body)
            case .secret: bytes.append(contentsOf: secret.utf8)
            }
        }
        return bytes
    }

    private func fits(_ sent: [UInt8], bytes: [UInt8], key: [UInt8]) -> Bool {
        switch algorithm {
        case .hmacSHA256:
            let code = HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key))
            return ConstantTime.equal(Array(code), sent)
        case .hmacSHA1:
            let code = HMAC<Insecure.SHA1>.authenticationCode(
                for: bytes, using: SymmetricKey(data: key))
            return ConstantTime.equal(Array(code), sent)
        case .sha256:
            return ConstantTime.equal(Array(SHA256.hash(data: bytes)), sent)
        case .ed25519:
            let publicKey = try? Curve25519.Signing.PublicKey(rawRepresentation: key)
            return publicKey?.isValidSignature(sent, for: bytes) ?? false
        }
    }
}

extension SignatureRecipe.Encoding {
    /// Returns the bytes that `text` encodes, or `nil` if it is malformed.
    func bytes(of text: String) -> [UInt8]? {
        switch self {
        case .utf8: Array(text.utf8)
        case .base64: Base64.decode(text)
        case .hex: Hexadecimal.decode(text)
        }
    }
}
