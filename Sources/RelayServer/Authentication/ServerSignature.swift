import ChangeSources
import Crypto
import RelayModel
package import Storage

/// The reason why a server-to-server signature is refused.
package enum SignatureRefusal: Error, Sendable, Hashable {
    /// One of the three header fields is missing.
    case missingHeader(String)
    /// The container has no key with this ID.
    case unknownKeyID
    /// The key was revoked.
    case revokedKey
    /// The date cannot be parsed.
    case malformedDate
    /// The date is too old.
    case dateTooOld(seconds: Int64)
    /// The date is too far in the future.
    case dateTooNew(seconds: Int64)
    /// The signature is not base64, or not DER.
    case malformedSignature(String)
    /// It was used before.
    case usedBefore
    /// The signature does not match; the hint says what it was made over, if that could be found
    /// out.
    case mismatch(hint: String?)

    /// The reason as a sentence for people.
    package var reason: String {
        let window = Limits.requestSignatureTolerance.components.seconds
        switch self {
        case .missingHeader(let name): return "the header \(name) is missing"
        case .unknownKeyID: return "this container has no server-to-server key with this key ID"
        case .revokedKey: return "the key was revoked"
        case .malformedDate:
            return "X-Apple-CloudKit-Request-ISO8601Date must look like 2016-01-25T22:15:43Z"
        case .dateTooOld(let seconds):
            return "the date is \(seconds) seconds old; allowed are \(window)"
        case .dateTooNew(let seconds):
            return "the date is \(seconds) seconds ahead; allowed are \(window)"
        case .malformedSignature(let what):
            return "X-Apple-CloudKit-Request-SignatureV1 is not \(what)"
        case .usedBefore:
            return
                "it was already used, and each request that changes something needs a new "
                + "signature; sign every request again"
        case .mismatch(let hint?): return "the signature does not match this request: \(hint)"
        case .mismatch(nil):
            return "the signature does not match the date, body, path and key of this request"
        }
    }
}

/// The signature of a request that was signed with a server-to-server key.
///
/// It is ECDSA P-256 with SHA-256 over `date:base64(SHA256(body)):path`. Clients disagree about an
/// empty body, and both forms are in use: the hash of no bytes, or an empty text. The query is part
/// of the path, so that it cannot be added to a signed request. Clients that sign the bare path
/// (requests-cloudkit, OpenCloudKit) send no query.
package struct ServerSignature: Sendable, Hashable {
    /// The ID of the key.
    package let keyID: String
    private let date: String
    private let signature: String

    /// The names of the three header fields.
    package static let headers = [
        "X-Apple-CloudKit-Request-KeyID", "X-Apple-CloudKit-Request-ISO8601Date",
        "X-Apple-CloudKit-Request-SignatureV1",
    ]

    /// Reads the header fields of `request`; `nil` if it has none of them.
    ///
    /// - Throws: ``SignatureRefusal/missingHeader(_:)`` if it has only some of them.
    package init?(_ request: RelayRequest) throws(SignatureRefusal) {
        let values = Self.headers.map { request.header($0) }
        guard values.contains(where: { $0 != nil }) else { return nil }
        guard let keyID = values[0] else { throw .missingHeader(Self.headers[0]) }
        guard let date = values[1] else { throw .missingHeader(Self.headers[1]) }
        guard let signature = values[2] else { throw .missingHeader(Self.headers[2]) }
        self.keyID = keyID
        self.date = date
        self.signature = signature
    }

    /// Verifies the signature over `request` with one of the container's `keys`.
    ///
    /// - Returns: The key that made it.
    /// - Throws: ``SignatureRefusal`` that names the part that failed.
    @discardableResult
    package func verify(
        _ request: RelayRequest, keys: [AccessKey]
    ) throws(SignatureRefusal) -> AccessKey {
        let key = try key(at: request.receivedAt, among: keys)
        guard let bytes = Base64.decode(signature) else { throw .malformedSignature("base64") }
        guard let parsed = try? P256.Signing.ECDSASignature(derRepresentation: bytes) else {
            throw .malformedSignature("an ECDSA signature in DER form")
        }
        guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: key.verifier) else {
            throw .unknownKeyID
        }
        guard Self.accepted(request).contains(where: { fits($0, parsed, publicKey) }) else {
            let mistake = Self.mistakes(request).first { fits($0.signed, parsed, publicKey) }
            throw .mismatch(hint: mistake?.hint)
        }
        return key
    }

    /// A value that no other signature has, with the moment until which this signature can be used.
    ///
    /// It is made from the first number of the signature's pair, which belongs to one secret number
    /// of the signer. The second number has two valid forms. The ID of the key is not part of it,
    /// because it is not signed, and one key may have several IDs, or one in two spellings.
    var nonce: (bytes: [UInt8], until: Timestamp)? {
        guard let bytes = Base64.decode(signature),
            let parsed = try? P256.Signing.ECDSASignature(derRepresentation: bytes),
            let moment = Timestamp(iso8601: date)
        else { return nil }
        return (
            Array(SHA256.hash(data: Array(parsed.rawRepresentation.prefix(32)))),
            moment.advanced(by: Limits.requestSignatureTolerance * 2)
        )
    }

    /// Returns the key that the request names; the signature is not verified yet.
    ///
    /// - Throws: ``SignatureRefusal`` for a request that would be refused with any body.
    func key(
        at now: Timestamp, among keys: [AccessKey]
    ) throws(SignatureRefusal) -> AccessKey {
        let candidates = keys.filter { $0.kind == .serverToServer && $0.id == keyID }
        guard let key = candidates.first(where: { $0.revokedAt == nil }) ?? candidates.first
        else { throw .unknownKeyID }
        guard key.revokedAt == nil else { throw .revokedKey }
        try checkDate(now: now)
        return key
    }

    /// One form of a signed text: what is in the place of the body and of the path.
    struct Reading {
        var hash: String
        var path: String
    }

    /// Returns the accepted forms.
    static func accepted(_ request: RelayRequest) -> [Reading] {
        var hashes = [Self.hash(of: request.body)]
        if request.body.isEmpty { hashes.append("") }
        return hashes.map { Reading(hash: $0, path: request.target) }
    }

    /// Returns forms that are refused, with the hint for a client that signed one of them.
    private static func mistakes(
        _ request: RelayRequest
    ) -> [(signed: Reading, hint: String)] {
        var mistakes: [(signed: Reading, hint: String)] = []
        let hash = Self.hash(of: request.body)
        if !request.body.isEmpty {
            for nothing in ["", Self.hash(of: [])] {
                let hint =
                    "it was made over an empty body, but this request's body has "
                    + "\(request.body.count) bytes"
                mistakes.append((Reading(hash: nothing, path: request.target), hint))
                mistakes.append((Reading(hash: nothing, path: request.path), hint))
            }
            let digits = Hexadecimal.encode(SHA256.hash(data: request.body))
            mistakes.append(
                (
                    Reading(hash: digits, path: request.path),
                    "the body's hash must be in base64, not in hexadecimal digits"
                ))
        }
        if request.path != request.target {
            let hint = "it was made over the path alone, but the query must be signed too"
            mistakes.append((Reading(hash: hash, path: request.path), hint))
        }
        let host = request.header("Host") ?? ""
        for scheme in ["https://", "http://"] {
            mistakes.append(
                (
                    Reading(hash: hash, path: scheme + host + request.path),
                    "the path must be signed without scheme and host"
                ))
        }
        return mistakes
    }

    private func fits(
        _ reading: Reading, _ signature: P256.Signing.ECDSASignature,
        _ key: P256.Signing.PublicKey
    ) -> Bool {
        let text = "\(date):\(reading.hash):\(reading.path)"
        return key.isValidSignature(signature, for: SHA256.hash(data: Array(text.utf8)))
    }

    private static func hash(of body: [UInt8]) -> String {
        Base64.encode(Array(SHA256.hash(data: body)))
    }

    private func checkDate(now: Timestamp) throws(SignatureRefusal) {
        guard let moment = Timestamp(iso8601: date) else { throw .malformedDate }
        let age = now.duration(since: moment)
        guard age <= Limits.requestSignatureTolerance else {
            throw .dateTooOld(seconds: age.components.seconds)
        }
        guard age >= .zero - Limits.requestSignatureTolerance else {
            throw .dateTooNew(seconds: -age.components.seconds)
        }
    }
}
