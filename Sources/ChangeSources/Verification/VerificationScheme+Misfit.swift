import RelayModel

extension VerificationScheme {
    /// The member that no sender could satisfy, and what is allowed; `nil` if there is none.
    var misfit: (member: String, reason: String)? {
        switch self {
        case .none, .standardWebhooks, .bearer, .tokenBody: nil
        case .header(let name):
            HeaderOnItsWay(name).ruleBrokenByProof.map { (member: "header", reason: $0) }
        case .combined(let signature):
            HeaderOnItsWay(signature.header).ruleBrokenByProof.map {
                (member: "header", reason: $0)
            }
        case .signature(let recipe): recipe.misfit
        }
    }
}

extension SignatureRecipe {
    /// The member that no signature could satisfy, and what is allowed; `nil` if there is none.
    var misfit: (member: String, reason: String)? {
        if let rule = HeaderOnItsWay(header).ruleBrokenByProof { return ("header", rule) }
        // A header's value arrives without the blanks around it.
        if !(prefix + "x").isHeaderText(upTo: .max) {
            return ("prefix", "must have no control characters and no blank at its beginning")
        }
        for (index, part) in parts.enumerated() {
            guard case .header(let name) = part else { continue }
            if part.covers(header) {
                return (
                    "parts[\(index)].header",
                    "\(header) contains the signature, which cannot cover itself"
                )
            }
            if let rule = HeaderOnItsWay(name).ruleBroken {
                return ("parts[\(index)].header", rule)
            }
        }
        if timestampHeader?.lowercased() == "date" {
            return (
                "timestampHeader",
                "Date does not contain whole seconds since 1970; name a header that does"
            )
        }
        if timestampHeader == nil, tolerance != Limits.webhookSignatureTolerance {
            return (
                "toleranceSeconds",
                "has no effect without timestampHeader, the signed header that contains the time"
            )
        }
        return keyMisfit
    }

    private var keyMisfit: (member: String, reason: String)? {
        switch (algorithm, keyEncoding) {
        case (.sha256, .base64), (.sha256, .hex):
            (
                "keyEncoding",
                "must be \"utf8\" for sha256, which has no key: it digests the secret as written"
            )
        case (.ed25519, .utf8):
            (
                "keyEncoding",
                "must be \"base64\" or \"hex\" for ed25519, whose public key is 32 bytes"
            )
        default: nil
        }
    }
}

/// The fate of a header between a sender and the relay.
private struct HeaderOnItsWay {
    private let name: String
    private let key: String

    init(_ name: String) {
        self.name = name
        key = name.lowercased()
    }

    /// Headers of a single connection, which are not forwarded (RFC 9110, 7.6.1), and the host,
    /// which HTTP/2 sends elsewhere.
    private static let ofConnections: Set<String> = [
        "connection", "host", "http2-settings", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// Headers that the relay interprets itself.
    private static let ofBodies: Set<String> = [
        "content-encoding", "content-length", "content-type", "expect",
    ]

    /// The reason why the header never arrives as its sender wrote it; `nil` if it does.
    var ruleBroken: String? {
        if Self.ofConnections.contains(key) {
            return
                "\(name) belongs to a single connection, so it cannot be used to verify a webhook"
        }
        let isProxys = ["forwarded", "via", "x-real-ip"].contains(key)
        if isProxys || key.hasPrefix("x-forwarded-") {
            return "\(name) is written by proxies, so it does not arrive as the sender wrote it"
        }
        return nil
    }

    /// The reason why no sender can prove itself with the header; `nil` if it can.
    var ruleBrokenByProof: String? {
        if let ruleBroken { return ruleBroken }
        guard Self.ofBodies.contains(key) else { return nil }
        return "\(name) describes the body, so it cannot prove who sent it"
    }
}
