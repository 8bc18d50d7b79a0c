import Crypto
import RelayModel

/// Stripe's form of a signature: time and signatures in one header, as `t=1492774577,v1=5257a8…`.
///
/// Other senders use the same form in a header of another name. The signature is HMAC-SHA256, in
/// hexadecimal digits, of the time, a dot and the raw body; the key is the text of the secret.
/// While a secret is being replaced, the sender signs with both secrets, and one `v1` that fits is
/// enough. Elements with other names, such as `v0`, are ignored.
package struct CombinedSignature: Sendable, Hashable {
    /// The name of the header.
    package var header: String
    /// The maximum difference between the signed time and the relay's clock.
    package var tolerance: Duration

    package init(
        header: String = usualHeader, tolerance: Duration = Limits.webhookSignatureTolerance
    ) {
        self.header = header
        self.tolerance = tolerance
    }

    /// The name of Stripe's header.
    package static let usualHeader = "Stripe-Signature"

    /// Whether the header is Stripe's and not that of another sender.
    var isStripes: Bool { header.lowercased() == Self.usualHeader.lowercased() }

    /// The maximum number of signatures that are compared.
    ///
    /// A sender that is replacing its secret sends two; a hostile header may have thousands.
    private static let mostSignatures = 8
    /// The maximum number of elements that are read: the time, and signatures of several versions.
    private static let mostElements = 32

    private static let rule =
        "t= and whole seconds since 1970, and v1= and an HMAC-SHA256 in hexadecimal digits, with a "
        + "comma between"

    /// Returns the value of the header that a sender with `secret` sends.
    package static func value(time: String, body: [UInt8], secret: String) -> String {
        "t=\(time),v1=\(Hexadecimal.encode(code(time: time, body: body, secret: secret)))"
    }

    private static func code(time: String, body: [UInt8], secret: String) -> [UInt8] {
        Array(
            HMAC<SHA256>.authenticationCode(
                for: Array("\(time).".utf8) + body,
                using: SymmetricKey(data: Array(secret.utf8))))
    }

    /// Returns the index of the secret that one of the signatures was made with.
    func fittingSecret(
        _ request: WebhookRequest, among secrets: [SourceSecret]
    ) throws(VerificationError) -> Int {
        let (time, signatures) = try elements(of: try request.headers.required(header))
        guard
            try WebhookHeaders.isTimestamp(
                time, of: header, now: request.receivedAt, tolerance: tolerance)
        else { throw .malformedHeader(header, rule: Self.rule) }
        for (index, secret) in secrets.enumerated() {
            let code = Self.code(time: time, body: request.body, secret: secret.value)
            if signatures.contains(where: { ConstantTime.equal(code, $0) }) { return index }
        }
        throw .signatureMismatch(header: header)
    }

    /// Returns the time and the signatures in the header's value.
    ///
    /// Two lines of the header have been joined by a comma. Two different times are refused,
    /// because either may be the one that the sender signed.
    private func elements(
        of value: String
    ) throws(VerificationError) -> (time: String, signatures: [[UInt8]]) {
        var times: Set<String> = []
        var signatures: [[UInt8]] = []
        for element in value.split(separator: ",").prefix(Self.mostElements) {
            let parts = element.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            switch parts[0].drop(while: { $0 == " " }) {
            case "t": times.insert(String(parts[1].filter { $0 != " " }))
            case "v1":
                let digits = String(parts[1].filter { $0 != " " })
                guard signatures.count < Self.mostSignatures,
                    let bytes = Hexadecimal.decode(digits), bytes.count == SHA256.byteCount
                else { continue }
                signatures.append(bytes)
            default: continue
            }
        }
        guard let time = times.first, times.count == 1, !signatures.isEmpty else {
            throw .malformedHeader(header, rule: Self.rule)
        }
        return (time, signatures)
    }
}
