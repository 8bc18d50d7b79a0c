import Crypto
import RelayModel

/// Stripe's form of a signature: time and signatures in one header, as `t=1492774577,v1=5257a8…`.
///
/// Others send it under names of their own. The signature is HMAC-SHA256, in hexadecimal digits, of
/// the time, a dot and the raw body, and the key is the secret as it is written. While a secret is
/// replaced, the sender signs with both of them, and one `v1` that fits is enough. Elements of
/// other names, such as `v0`, are passed over.
package struct CombinedSignature: Sendable, Hashable {
    /// The header with all of it.
    package var header: String
    /// How far the time may be from the relay's clock.
    package var tolerance: Duration

    package init(
        header: String = usualHeader, tolerance: Duration = Limits.webhookSignatureTolerance
    ) {
        self.header = header
        self.tolerance = tolerance
    }

    /// Stripe's own header.
    package static let usualHeader = "Stripe-Signature"

    /// Whether it is Stripe's own, and not another sender's.
    var isStripes: Bool { header.lowercased() == Self.usualHeader.lowercased() }

    /// A hostile header may list thousands; a sender that rotates lists two.
    private static let mostSignatures = 8
    /// The elements that are looked at: signatures of several versions, and the time.
    private static let mostElements = 32

    private static let rule =
        "t= and whole seconds since 1970, and v1= and an HMAC-SHA256 in hexadecimal digits, with a "
        + "comma between"

    /// The value of the header that a sender with `secret` would send.
    package static func value(time: String, body: [UInt8], secret: String) -> String {
        "t=\(time),v1=\(Hexadecimal.encode(code(time: time, body: body, secret: secret)))"
    }

    private static func code(time: String, body: [UInt8], secret: String) -> [UInt8] {
        Array(
            HMAC<SHA256>.authenticationCode(
                for: Array("\(time).".utf8) + body,
                using: SymmetricKey(data: Array(secret.utf8))))
    }

    /// The index of the secret of which one signature is.
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

    /// The time and the signatures.
    ///
    /// A header that came twice was joined by a comma. It must not name two times, because the
    /// sender may have signed either.
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
