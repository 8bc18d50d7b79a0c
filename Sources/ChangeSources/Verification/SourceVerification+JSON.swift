import RelayModel

/// The names of ``VerificationScheme`` in JSON.
private enum SchemeName: String, CaseIterable {
    case none, standardWebhooks, header, bearer, minapp, appwrite, airtable, stripe, signature
}

extension SourceVerification {
    /// Parses `{"scheme": …, "secrets": […]}`.
    init(reader: JSONReader) throws(JSONContractError) {
        let scheme = try Self.scheme(reader: reader)
        self.init(scheme, secrets: try Self.secrets(reader, scheme: scheme))
    }

    /// Parses the scheme with its own members.
    static func scheme(reader: JSONReader) throws(JSONContractError) -> VerificationScheme {
        let name: SchemeName = try reader.require("scheme", try reader.choice("scheme"))
        let scheme: VerificationScheme
        var members = ["scheme", "secrets"]
        switch name {
        case .none: (scheme, members) = (.none, ["scheme"])
        case .standardWebhooks:
            members.append("toleranceSeconds")
            scheme = .standardWebhooks(tolerance: try reader.tolerance())
        case .header:
            members.append("header")
            scheme = .header(try reader.headerName("header"))
        case .bearer: scheme = .bearer
        case .minapp: scheme = .tokenBody
        case .appwrite:
            members.append("url")
            scheme = .signature(.appwrite(url: try reader.boundedText("url")))
        case .airtable: scheme = .signature(.airtable)
        case .stripe:
            members += ["header", "toleranceSeconds"]
            scheme = .combined(
                CombinedSignature(
                    header: try reader.optionalHeaderName("header")
                        ?? CombinedSignature.usualHeader,
                    tolerance: try reader.tolerance()))
        case .signature:
            members.append(contentsOf: SignatureRecipe.members)
            scheme = .signature(try SignatureRecipe(reader: reader))
        }
        try reader.allowOnly(members)
        return scheme
    }

    private static func secrets(
        _ reader: JSONReader, scheme: VerificationScheme
    ) throws(JSONContractError) -> [SourceSecret] {
        if scheme == .none { return [] }
        let elements = try reader.require("secrets", try reader.array("secrets"))
        guard (1...maximumSecrets).contains(elements.count) else {
            throw reader.failure(
                "secrets", "one secret is required; two are allowed while one replaces the other")
        }
        var secrets: [SourceSecret] = []
        for (index, element) in elements.enumerated() {
            let path = reader.path(of: "secrets[\(index)]")
            let entry = try JSONReader(element, path: path)
            try entry.allowOnly(["secret", "until"])
            let value = try entry.require("secret", try entry.string("secret"))
            if let rule = scheme.ruleBroken(bySecret: value) {
                throw entry.failure("secret", rule)
            }
            let until = try entry.integer("until").map(Timestamp.init(milliseconds:))
            secrets.append(SourceSecret(value, until: until))
        }
        return secrets
    }

    func json(_ form: SecretForm) -> JSONObject {
        var object = scheme.json
        guard scheme != .none else { return object }
        object["secrets"] = .array(
            secrets.map { secret in
                var entry: JSONObject = [:]
                switch form {
                case .included: entry["secret"] = .string(secret.value)
                case .hidden: entry["secret"] = .string(secret.description)
                }
                entry["until"] = secret.until.map { .integer($0.milliseconds) }
                return .object(entry)
            })
        return object
    }
}

extension VerificationScheme {
    /// Returns the rule that `secret` breaks, if there is one.
    ///
    /// The text never contains the secret.
    func ruleBroken(bySecret secret: String) -> String? {
        switch self {
        case .standardWebhooks:
            StandardWebhooksKey(secret) == nil
                ? "must be whsec_ and 24 to 64 bytes in base64, or whpk_ and 32 bytes in base64"
                : nil
        case .signature(let recipe):
            secret.isEmpty || recipe.keyEncoding.bytes(of: secret) == nil
                ? "must be a key in \(recipe.keyEncoding)" : nil
        case .none, .header, .bearer, .tokenBody, .combined:
            secret.isEmpty ? "must not be empty" : nil
        }
    }

    /// Returns the further rule that a new secret breaks, if there is one: the secret is publicly
    /// known, or no sender could use it.
    ///
    /// Secrets from before these rules can still be loaded.
    func ruleBroken(bySavingSecret secret: String) -> String? {
        if let rule = SourceSecret.ruleBroken(byLengthOf: secret) { return rule }
        if secret == SourceSecret.placeholder {
            return "is the placeholder that is shown instead of a secret; leave secrets out to "
                + "keep the present one"
        }
        switch self {
        case .header, .bearer:
            return secret.isHeaderText(upTo: .max)
                ? nil
                : "must be a valid header value: no control characters or line breaks, and no "
                    + "blank at its beginning or end"
        case .signature(let recipe) where recipe.algorithm == .ed25519:
            return recipe.keyEncoding.bytes(of: secret)?.count == 32
                ? nil : "must be a public key of ed25519: 32 bytes in \(recipe.keyEncoding)"
        case .none, .standardWebhooks, .tokenBody, .combined, .signature: return nil
        }
    }

    var json: JSONObject {
        switch self {
        case .none: return ["scheme": "none"]
        case .standardWebhooks(let tolerance):
            return [
                "scheme": "standardWebhooks",
                "toleranceSeconds": .integer(tolerance.components.seconds),
            ]
        case .header(let name): return ["scheme": "header", "header": .string(name)]
        case .bearer: return ["scheme": "bearer"]
        case .tokenBody: return ["scheme": "minapp"]
        case .combined(let signature):
            return [
                "scheme": "stripe", "header": .string(signature.header),
                "toleranceSeconds": .integer(signature.tolerance.components.seconds),
            ]
        case .signature(let recipe):
            if recipe == .airtable { return ["scheme": "airtable"] }
            guard recipe == .appwrite(url: recipe.url) else { return recipe.json }
            var object: JSONObject = ["scheme": "appwrite"]
            object["url"] = recipe.url.map { .string($0) }
            return object
        }
    }
}

extension SignatureRecipe {
    static let members = [
        "header", "prefix", "parts", "algorithm", "keyEncoding", "output", "url",
        "timestampHeader", "toleranceSeconds",
    ]
    /// The maximum number of parts.
    ///
    /// They are concatenated in memory for each webhook, before it is verified, so a body that was
    /// repeated many times would exhaust the memory.
    private static let maximumParts = 32

    init(reader: JSONReader) throws(JSONContractError) {
        let algorithm: Algorithm = try reader.require("algorithm", try reader.choice("algorithm"))
        let output: Encoding = try reader.require("output", try reader.choice("output"))
        guard output != .utf8 else {
            throw reader.failure("output", "must be \"base64\" or \"hex\"")
        }
        var parts: [Part] = []
        let elements = try reader.require("parts", try reader.array("parts"))
        guard elements.count <= Self.maximumParts else {
            throw reader.failure("parts", "at most \(Self.maximumParts) are allowed")
        }
        for (index, element) in elements.enumerated() {
            parts.append(try Part(json: element, path: reader.path(of: "parts[\(index)]")))
        }
        guard parts.count(where: { $0 == .body }) == 1 else {
            throw reader.failure("parts", "must contain \"body\" exactly once")
        }
        guard algorithm != .sha256 || parts.contains(.secret) else {
            throw reader.failure("parts", "must contain \"secret\": plain sha256 has no other key")
        }
        let timestampHeader = try reader.optionalHeaderName("timestampHeader")
        if let timestampHeader, !parts.contains(where: { $0.covers(timestampHeader) }) {
            throw reader.failure("timestampHeader", "must be one of the signed parts")
        }
        self.init(
            header: try reader.headerName("header"),
            prefix: try reader.boundedText("prefix") ?? "",
            parts: parts, algorithm: algorithm,
            keyEncoding: try reader.choice("keyEncoding") ?? .utf8, output: output,
            url: try reader.boundedText("url"), timestampHeader: timestampHeader,
            tolerance: try reader.tolerance())
    }

    var json: JSONObject {
        var object: JSONObject = [
            "scheme": "signature", "header": .string(header), "prefix": .string(prefix),
            "parts": .array(parts.map(\.json)), "algorithm": .string(algorithm.rawValue),
            "keyEncoding": .string(keyEncoding.rawValue), "output": .string(output.rawValue),
            "toleranceSeconds": .integer(tolerance.components.seconds),
        ]
        object["url"] = url.map { .string($0) }
        object["timestampHeader"] = timestampHeader.map { .string($0) }
        return object
    }
}

extension SignatureRecipe.Part {
    init(json: JSONValue, path: String) throws(JSONContractError) {
        switch json {
        case "url": self = .url
        case "body": self = .body
        case "secret": self = .secret
        case .object(let object) where object.members.count == 1:
            let reader = try JSONReader(json, path: path)
            try reader.allowOnly(["literal", "header"])
            if let text = try reader.boundedText("literal") {
                self = .literal(text)
            } else {
                self = .header(try reader.headerName("header"))
            }
        default:
            throw JSONContractError(
                path: path,
                reason: "must be \"url\", \"body\", \"secret\", {\"literal\": …} or {\"header\": …}"
            )
        }
    }

    var json: JSONValue {
        switch self {
        case .literal(let text): ["literal": .string(text)]
        case .header(let name): ["header": .string(name)]
        case .url: "url"
        case .body: "body"
        case .secret: "secret"
        }
    }

    func covers(_ header: String) -> Bool {
        if case .header(let name) = self { name.lowercased() == header.lowercased() } else { false }
    }
}

extension JSONReader {
    /// Returns a text that is a part of what is signed.
    ///
    /// It is hashed with each webhook before anybody is authenticated, so it must be short.
    func boundedText(_ name: String) throws(JSONContractError) -> String? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.count <= Limits.maximumRecordNameBytes else {
            throw failure(name, "at most \(Limits.maximumRecordNameBytes) bytes are allowed")
        }
        return text
    }

    /// Parses `toleranceSeconds`, 1 to 3600; five minutes by default (Standard Webhooks 1.0).
    func tolerance() throws(JSONContractError) -> Duration {
        guard let seconds = try integer("toleranceSeconds") else {
            return Limits.webhookSignatureTolerance
        }
        guard (1...3600).contains(seconds) else {
            throw failure("toleranceSeconds", "must be 1 to 3600")
        }
        return .seconds(seconds)
    }
}
