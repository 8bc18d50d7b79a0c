package import RelayModel

extension ChangeSource {
    private static let members = [
        "name", "preset", "verification", "mapping", "onUnmappable", "maximumBodyBytes",
        "contentWindowSeconds", "follow",
    ]

    /// Parses a source from its JSON form (`docs/change-sources.md`).
    ///
    /// - Throws: ``JSONContractError`` with the invalid member and what is allowed.
    package init(json: JSONValue, path: String = "") throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(Self.members)
        let preset: SourcePreset = try reader.require("preset", try reader.choice("preset"))
        let verification = try SourceVerification(
            reader: try reader.require("verification", try reader.reader("verification")))
        self.init(
            name: try reader.require("name", try reader.identifier("name")), preset: preset,
            verification: verification)
        if let mapping = try reader.reader("mapping") {
            self.mapping = try SourceMapping(reader: mapping, preset: preset)
        }
        onUnmappable = try reader.choice("onUnmappable") ?? onUnmappable
        if let bytes = try reader.integer("maximumBodyBytes") {
            guard (1...Int64(Limits.maximumWebhookBytes)).contains(bytes) else {
                throw reader.failure(
                    "maximumBodyBytes", "must be 1 to \(Limits.maximumWebhookBytes)")
            }
            maximumBodyBytes = Int(bytes)
        }
        if let seconds = try reader.integer("contentWindowSeconds") {
            guard (0...Self.maximumContentWindow).contains(seconds) else {
                throw reader.failure(
                    "contentWindowSeconds", "must be 0 to \(Self.maximumContentWindow)")
            }
            contentWindow = .seconds(seconds)
        }
        if let follow = try reader.reader("follow") {
            guard preset == .postgres else {
                throw reader.failure("follow", "is allowed with the preset postgres only")
            }
            self.follow = try FollowDefinition(follow)
        }
        try checkCompleteness(reader)
    }

    /// The maximum content window, in seconds: an hour.
    static let maximumContentWindow: Int64 = 3600

    /// The form in which the registry stores this source, including secrets.
    ///
    /// Parsing it returns an equal source.
    package var json: JSONObject {
        form(secrets: .included)
    }

    /// The form in which the admin surface shows this source, with placeholders instead of secrets.
    package var shownJSON: JSONObject {
        form(secrets: .hidden)
    }

    private func form(secrets: SecretForm) -> JSONObject {
        var form: JSONObject = [
            "name": .string(name.rawValue), "preset": .string(preset.rawValue),
            "verification": .object(verification.json(secrets)),
            "mapping": .object(mapping.json), "onUnmappable": .string(onUnmappable.rawValue),
            "maximumBodyBytes": .integer(Int64(maximumBodyBytes)),
            "contentWindowSeconds": .integer(contentWindow.components.seconds),
        ]
        form["follow"] = follow.map { .object($0.json) }
        return form
    }

    /// Refuses a source that could never produce a change.
    private func checkCompleteness(_ reader: JSONReader) throws(JSONContractError) {
        if preset == .minapp, mapping.table == nil {
            throw reader.failure(
                "mapping.table",
                "is required: Minapp's requests do not name a table; use one source for each table")
        }
        if preset == .custom {
            guard mapping.table != nil else {
                throw reader.failure("mapping.table", "is required for the preset custom")
            }
            guard mapping.body != nil else {
                throw reader.failure("mapping.body", "is required for the preset custom")
            }
        }
    }
}
