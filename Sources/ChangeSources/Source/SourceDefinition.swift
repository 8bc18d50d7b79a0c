package import RelayModel

/// A saved source: the given members are set, and all others stay as they were.
package struct SourceDefinition: Sendable {
    /// The source, with its secrets.
    package let source: ChangeSource
    /// The secret that was made, if there was none and the scheme needs one.
    package let madeSecret: String?
    /// Warnings about members that were kept, or that have no effect, probably unintentionally.
    package let warnings: [String]

    /// The length of new secrets, in bytes (Standard Webhooks 1.0 allows 24 to 64).
    private static let secretBytes = 32

    /// Completes `given` with `former`, the source before, and with the preset's usual
    /// verification.
    ///
    /// A null member gets the value that it would have in a new source.
    ///
    /// - Parameters:
    ///   - given: The given members.
    ///   - former: The source before; `nil` for a new one.
    ///   - randomBytes: Returns the requested number of unpredictable bytes.
    /// - Throws: ``RelayModel/JSONContractError`` with the invalid member.
    package init(
        _ given: JSONObject, over former: ChangeSource?, randomBytes: (Int) -> [UInt8]
    ) throws(JSONContractError) {
        var json = Self.overlaid(
            former?.json ?? [:], by: given, except: ["mapping", "verification", "follow"])
        json["mapping"] = Self.mapping(given["mapping"], over: former?.mapping.json)
        json["follow"] = Self.part(given["follow"], over: former?.follow?.json)
        let reader = try JSONReader(.object(json))
        let preset: SourcePreset = try reader.require("preset", try reader.choice("preset"))
        if let former, former.preset != preset {
            for name in Self.standards(of: former) where given[name] == nil { json[name] = nil }
        }
        warnings =
            Self.warnings(given, over: former, preset) + Self.warnings(ofTable: given, preset)
        guard
            case .object(var verification) = Self.verification(
                given["verification"], over: former, preset)
        else {
            json["verification"] = given["verification"]
            source = try ChangeSource(json: .object(json))
            madeSecret = nil
            return
        }
        var made: String?
        if verification["secrets"] == nil, verification["scheme"] != "none" {
            let scheme = try SourceVerification.scheme(
                reader: try JSONReader(.object(verification), path: "verification"))
            if let place = scheme.placeOfSecret {
                throw JSONContractError(
                    path: "verification.secrets",
                    reason:
                        "a secret is required: \(place) (belfry sources set … --secret-file FILE)")
            }
            let secret = scheme.secret(of: randomBytes(Self.secretBytes))
            verification["secrets"] = [["secret": .string(secret)]]
            made = secret
        }
        json["verification"] = .object(verification)
        source = try ChangeSource(json: .object(json))
        try source.checkSeams()
        try source.checkRecipe()
        try source.checkSecrets(beside: former)
        madeSecret = made
    }

    /// Returns the members that still have the default of the source's preset, and so get the
    /// default of a new preset.
    private static func standards(of source: ChangeSource) -> [String] {
        let standard = ChangeSource(
            name: source.name, preset: source.preset, verification: SourceVerification(.none))
        return ["onUnmappable", "maximumBodyBytes", "contentWindowSeconds"].filter {
            source.json[$0] == standard.json[$0]
        }
    }

    /// Returns a warning if the preset changes, but the verification of the former one is kept.
    private static func warnings(
        _ given: JSONObject, over former: ChangeSource?, _ preset: SourcePreset
    ) -> [String] {
        guard let former, former.preset != preset, given["verification"] == nil,
            former.verification.scheme != .none
        else { return [] }
        let known = former.verification.json(.hidden)
        let usual = preset.usualVerification
        guard known["scheme"] != usual["scheme"] || known["header"] != usual["header"],
            case .string(let before)? = known["scheme"], case .string(let scheme)? = usual["scheme"]
        else { return [] }
        if before == scheme, case .string(let header)? = usual["header"] {
            return [
                "verification.header: it is unchanged, but senders of \(preset.rawValue) send the "
                    + "secret in \(header) by default; to switch: belfry sources set … --header "
                    + "\(header)"
            ]
        }
        return [
            "verification: it is still \(before), but senders of \(preset.rawValue) use \(scheme) "
                + "by default; to switch, with a new secret: \"verification\": null, or belfry "
                + "sources set … --scheme \(scheme)"
        ]
    }

    /// Returns a warning if the mapping names a table although the preset ignores it.
    private static func warnings(ofTable given: JSONObject, _ preset: SourcePreset) -> [String] {
        guard case .object(let mapping)? = given["mapping"], let table = mapping["table"],
            table != .null, !preset.heedsTable
        else { return [] }
        return [
            "mapping.table: it has no effect, because what \(preset.rawValue) posts names its "
                + "table; to leave tables out, use ignoredTables"
        ]
    }

    private static func overlaid(
        _ former: JSONObject, by given: JSONObject, except others: Set<String> = []
    ) -> JSONObject {
        former.overlaid(by: given.members.filter { !others.contains($0.name) })
    }

    /// Returns a part of the definition, completed with the same part of the former one.
    private static func part(_ given: JSONValue?, over former: JSONObject?) -> JSONValue? {
        switch given {
        case nil: former.map { .object($0) }
        case .null?: nil
        case .object(let members)?: .object(overlaid(former ?? [:], by: members))
        case let other?: other
        }
    }

    /// Returns a mapping, completed with the former one.
    ///
    /// Its tables and columns are completed individually.
    ///
    /// Otherwise, a request that names one table would remove the rules of all others, such as
    /// those for the owners of their rows.
    private static func mapping(_ given: JSONValue?, over former: JSONObject?) -> JSONValue? {
        guard case .object(var members)? = given else { return part(given, over: former) }
        for name in ["recordTypes", "keys", "tables", "columns"] {
            guard case .object(let entries)? = members[name] else { continue }
            var known: JSONObject = [:]
            if case .object(let before)? = former?[name] { known = before }
            members[name] = .object(overlaid(known, by: entries))
        }
        return part(.object(members), over: former)
    }

    /// Returns the verification.
    ///
    /// If the scheme changes, the former scheme's members and secrets are dropped.
    private static func verification(
        _ given: JSONValue?, over former: ChangeSource?, _ preset: SourcePreset
    ) -> JSONValue {
        let usual = preset.usualVerification
        let known = former?.verification.json(.included)
        switch given {
        case nil: return .object(known ?? usual)
        case .null?: return .object(usual)
        case .object(let members)?:
            let scheme = members["scheme"] ?? known?["scheme"] ?? usual["scheme"]
            let base = [known, usual].compactMap { $0 }.first { $0["scheme"] == scheme }
            return .object(overlaid(base ?? [:], by: members))
        case let other?: return other
        }
    }
}

extension ChangeSource {
    /// Returns this source with another secret.
    ///
    /// The former secret is accepted until `end`, or no longer.
    ///
    /// - Parameters:
    ///   - secret: The new secret; if it is `nil`, one is made from `randomBytes`.
    ///   - end: When the former secret expires; `nil` means at once.
    ///   - now: The current time.
    ///   - randomBytes: Returns the requested number of unpredictable bytes.
    /// - Returns: The source and its new secret.
    /// - Throws: ``RelayModel/JSONContractError`` if the scheme has no secret, or the secret has
    ///   another form.
    package func rotated(
        to secret: String?, formerUntil end: Timestamp?, at now: Timestamp,
        randomBytes: (Int) -> [UInt8]
    ) throws(JSONContractError) -> (source: ChangeSource, secret: String) {
        guard verification.scheme != .none else {
            throw JSONContractError(path: "source", reason: "it is not verified by a secret")
        }
        if secret == nil, let place = verification.scheme.placeOfSecret {
            throw JSONContractError(path: "secret", reason: "is required: \(place)")
        }
        let new = secret ?? verification.scheme.secret(of: randomBytes(32))
        if let rule = verification.scheme.ruleBroken(bySecret: new) {
            throw JSONContractError(path: "secret", reason: rule)
        }
        if let rule = verification.scheme.ruleBroken(bySavingSecret: new) {
            throw JSONContractError(path: "secret", reason: rule)
        }
        var copy = self
        copy.verification.secrets = [SourceSecret(new)]
        let former =
            verification.secrets.last { $0.until == nil }
            ?? verification.secrets.last { $0.isLive(at: now) }
        if let end, let former, former.value != new {
            let last = former.until.map { min($0, end) } ?? end
            copy.verification.secrets.insert(SourceSecret(former.value, until: last), at: 0)
        }
        return (copy, new)
    }

    /// Refuses secrets that are too long or could never be used.
    ///
    /// Secrets that `former` has are exempt, because they may have been saved before this rule.
    func checkSecrets(beside former: ChangeSource?) throws(JSONContractError) {
        let known = former?.verification.secrets.map(\.value) ?? []
        for (index, secret) in verification.secrets.enumerated() {
            guard !known.contains(secret.value),
                let rule = verification.scheme.ruleBroken(bySavingSecret: secret.value)
            else { continue }
            throw JSONContractError(
                path: "verification.secrets[\(index)].secret", reason: rule)
        }
    }
}
