import RelayModel

/// A shell script that posts one change to a source, signed as its sender would sign it.
struct SenderTrial {
    private let source: ChangeSource
    private let url: String
    private let secret: String?
    private let schema: String
    private let table: String

    init(
        _ source: ChangeSource, url: String, secret: String?, schema: String, table: String
    ) {
        self.source = source
        self.url = url
        self.secret = secret
        self.schema = schema
        self.table = table
    }

    /// The whole script; `nil` if only the sender can sign, or if a text of the source has
    /// characters that cannot be passed through a shell.
    var script: String? {
        var lines = ["url=\(ShellWord.quoted(url))"]
        if source.verification.scheme != .none {
            lines.append(
                secret.map { "secret=\(ShellWord.quoted($0))" }
                    ?? "secret=${BELFRY_SOURCE_SECRET:?set it to the secret of this source}")
        }
        // Identifiers that a sender never repeats get a new value each time.
        let shown = ShellWord.quoted(body.json.text)
            .replacing(TrialBody.unique, with: "trial-'\"$(date +%s)\"'")
        lines.append("body=\(shown)")
        guard let proof = proof() else { return nil }
        lines += proof.lines
        var headers = [("Content-Type", "application/json")] + presetHeaders + proof.headers
        let known = Set(headers.map { $0.0.lowercased() })
        for (index, asked) in body.headers.enumerated()
        where !known.contains(asked.name.lowercased()) {
            lines.append("asked\(index)=\(ShellWord.quoted(asked.value))")
            headers.append((asked.name, "$asked\(index)"))
        }
        // A token is not JSON.
        if source.verification.scheme == .tokenBody { headers[0].1 = "text/plain" }
        lines.append("curl -sS -X POST \"$url\" \\")
        lines += headers.map { "  -H \(Self.field($0.0, $0.1)) \\" }
        lines.append("  --data-binary \"$body\"")
        let script = lines.joined(separator: "\n")
        return script.utf8.contains(where: Self.isObeyed) ? nil : script
    }

    /// Returns whether terminals interpret a byte in pasted text even within quotes.
    ///
    /// Such a byte may end the line or the command, so that the rest begins another command.
    private static func isObeyed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): false
        default: byte < 0x20 || byte == 0x7F
        }
    }

    // MARK: The body

    /// One change as the sender writes it.
    private var body: TrialBody {
        TrialBody(of: source, schema: schema, table: table, isBinary: isBinary)
    }

    private var presetHeaders: [(String, String)] {
        switch source.preset {
        case .appwrite:
            [
                (
                    "X-Appwrite-Webhook-Events",
                    "databases.trial.collections.\(table).documents.trial-1.create"
                )
            ]
        case .minapp: [("X-Hydrogen-Trigger-Event", "on_create")]
        default: []
        }
    }

    // MARK: The proof

    private typealias Proof = (lines: [String], headers: [(String, String)])

    private func proof() -> Proof? {
        switch source.verification.scheme {
        case .none: return ([], [])
        case .header(let name): return ([], [(name, "$secret")])
        case .bearer: return ([], [("Authorization", "Bearer $secret")])
        case .standardWebhooks:
            // A public key cannot sign.
            if secret?.hasPrefix("whpk_") == true { return nil }
            return (
                [
                    "id=trial_$(openssl rand -hex 12)", "timestamp=$(date +%s)",
                    Self.key("${secret#whsec_}", .base64),
                    Self.signature(
                        of: ["$id.$timestamp.$body"], digest: "sha256", keyed: true,
                        output: .base64),
                ],
                [
                    (StandardWebhooks.idHeader, "$id"),
                    (StandardWebhooks.timestampHeader, "$timestamp"),
                    (StandardWebhooks.signatureHeader, "v1,$signature"),
                ]
            )
        case .tokenBody:
            let url64 = "openssl base64 -A | tr '+/' '-_' | tr -d '='"
            return (
                [
                    "head=$(printf %s '{\"alg\":\"HS256\",\"typ\":\"JWT\"}' | \(url64))",
                    "claims=$(printf %s \"$body\" | \(url64))", Self.key("$secret", .utf8),
                    "signature=$(printf %s \"$head.$claims\" | openssl dgst -sha256 -mac HMAC "
                        + "-macopt \"hexkey:$key\" -binary | \(url64))",
                    "body=$head.$claims.$signature",
                ], []
            )
        case .combined(let combined):
            return (
                [
                    "timestamp=$(date +%s)", Self.key("$secret", .utf8),
                    Self.signature(
                        of: ["$timestamp.$body"], digest: "sha256", keyed: true, output: .hex),
                ], [(combined.header, "t=$timestamp,v1=$signature")]
            )
        case .signature(let recipe): return proof(recipe)
        }
    }

    /// Whether the attributes of an event are signed, and therefore sent as headers.
    private var isBinary: Bool {
        guard source.preset == .cloudevents,
            case .signature(let recipe) = source.verification.scheme
        else { return false }
        return recipe.parts.contains { $0.covers("ce-specversion") }
    }

    /// Returns the value of a signed header, as a shell expression.
    private func value(of header: String, _ recipe: SignatureRecipe) -> String {
        let name = header.lowercased()
        if name == recipe.timestampHeader?.lowercased() { return "$(date +%s)" }
        switch isBinary ? name : "" {
        case "ce-specversion": return "1.0"
        case "ce-source": return "/trial"
        case "ce-type": return "trial.record.created"
        case "ce-subject": return "\(table)/trial-1"
        case "ce-time": return "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        case "ce-datacontenttype": return "application/json"
        default: return "trial_$(openssl rand -hex 12)"
        }
    }

    private func proof(_ recipe: SignatureRecipe) -> Proof? {
        let digest: String
        switch recipe.algorithm {
        case .ed25519: return nil
        case .hmacSHA1: digest = "sha1"
        case .hmacSHA256, .sha256: digest = "sha256"
        }
        var lines: [String] = []
        var headers: [(String, String)] = []
        var parts: [String] = []
        for part in recipe.parts {
            switch part {
            case .literal(let text):
                lines.append("literal\(parts.count)=\(ShellWord.quoted(text))")
                parts.append("$literal\(parts.count)")
            case .header(let name):
                let variable = "part\(parts.count)"
                lines.append("\(variable)=\(value(of: name, recipe))")
                headers.append((name, "$\(variable)"))
                parts.append("$\(variable)")
            case .url:
                lines.append("signed_url=\(ShellWord.quoted(recipe.url ?? url))")
                parts.append("$signed_url")
            case .body: parts.append("$body")
            case .secret: parts.append("$secret")
            }
        }
        if recipe.algorithm != .sha256 { lines.append(Self.key("$secret", recipe.keyEncoding)) }
        lines.append(
            Self.signature(
                of: parts, digest: digest, keyed: recipe.algorithm != .sha256,
                output: recipe.output))
        var prefix = ShellWord.escaped(recipe.prefix)
        // In an interactive shell, `!` within double quotes would be replaced by an earlier
        // command.
        if prefix.utf8.contains(UInt8(ascii: "!")) {
            lines.append("prefix=\(ShellWord.quoted(recipe.prefix))")
            prefix = "$prefix"
        }
        headers.append((recipe.header, "\(prefix)$signature"))
        return (lines, headers)
    }

    /// Returns the command that sets the key in hexadecimal digits, as openssl requires.
    private static func key(_ text: String, _ encoding: SignatureRecipe.Encoding) -> String {
        let digits = "od -An -v -tx1 | tr -d ' \\n'"
        return switch encoding {
        case .utf8: "key=$(printf %s \"\(text)\" | \(digits))"
        case .base64: "key=$(printf %s \"\(text)\" | openssl base64 -d -A | \(digits))"
        case .hex: "key=\(text)"
        }
    }

    private static func signature(
        of parts: [String], digest: String, keyed: Bool, output: SignatureRecipe.Encoding
    ) -> String {
        let quoted = parts.map { "\"\($0)\"" }.joined(separator: " ")
        let mac = keyed ? " -mac HMAC -macopt \"hexkey:$key\"" : ""
        let written = output == .hex ? "od -An -v -tx1 | tr -d ' \\n'" : "openssl base64 -A"
        return
            "signature=$(printf %s \(quoted) | openssl dgst -\(digest)\(mac) -binary | \(written))"
    }

    /// Returns a header field as one shell word.
    ///
    /// The shell expands its value.
    ///
    /// A header's name may contain characters that are special to a shell.
    private static func field(_ name: String, _ value: String) -> String {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case 0x2D, 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
        return isPlain ? "\"\(name): \(value)\"" : "\(ShellWord.quoted(name))\": \(value)\""
    }
}
