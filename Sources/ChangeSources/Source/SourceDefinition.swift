package import RelayModel

/// What saving a source means: what is named is set, and the rest stays as it was.
package struct SourceDefinition: Sendable {
    /// The source, with its secrets.
    package let source: ChangeSource
    /// The secret that was made, where there was none and the scheme needs one.
    package let madeSecret: String?
    /// What is as it was, and hardly as it is meant.
    package let warnings: [String]

    /// The length of secrets that are made, in bytes (Standard Webhooks 1.0 allows 24 to 64).
    private static let secretBytes = 32

    /// Completes `given` by `former`, the source before, and by the preset's usual verification.
    ///
    /// A member that is null is as it would be in a new source.
    ///
    /// - Parameters:
    ///   - given: the members that were named.
    ///   - former: the source before; `nil` for a new one.
    ///   - randomBytes: returns as many unpredictable bytes as it is asked for.
    /// - Throws: ``RelayModel/JSONContractError`` that names the member at fault.
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
                    reason: "one is needed: \(place) (belfry sources set … --secret-file FILE)")
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

    /// The members that a source has by its preset, and that another preset has otherwise.
    private static func standards(of source: ChangeSource) -> [String] {
        let standard = ChangeSource(
            name: source.name, preset: source.preset, verification: SourceVerification(.none))
        return ["onUnmappable", "maximumBodyBytes", "contentWindowSeconds"].filter {
            source.json[$0] == standard.json[$0]
        }
    }

    /// Of another preset: that its senders prove themselves otherwise.
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
                "verification.header: it is as it was, and senders of \(preset.rawValue) show the "
                    + "secret in \(header), unless they are told otherwise: "
                    + "belfry sources set … --header \(header)"
            ]
        }
        return [
            "verification: it is \(before) as it was, and senders of \(preset.rawValue) prove "
                + "themselves by \(scheme), unless they are told otherwise: "
                + "\"verification\": null, or belfry sources set … --scheme \(scheme), begins "
                + "anew with a secret of its own"
        ]
    }

    /// That a table which was named chooses nothing.
    private static func warnings(ofTable given: JSONObject, _ preset: SourcePreset) -> [String] {
        guard case .object(let mapping)? = given["mapping"], let table = mapping["table"],
            table != .null, !preset.heedsTable
        else { return [] }
        return [
            "mapping.table: it has no effect, since what \(preset.rawValue) posts names its table; "
                + "ignoredTables leaves tables out"
        ]
    }

    private static func overlaid(
        _ former: JSONObject, by given: JSONObject, except others: Set<String> = []
    ) -> JSONObject {
        former.overlaid(by: given.members.filter { !others.contains($0.name) })
    }

    /// A part of the definition that is completed by the same part of the one before.
    private static func part(_ given: JSONValue?, over former: JSONObject?) -> JSONValue? {
        switch given {
        case nil: former.map { .object($0) }
        case .null?: nil
        case .object(let members)?: .object(overlaid(former ?? [:], by: members))
        case let other?: other
        }
    }

    /// A mapping that is completed by the one before, of its tables and columns each by itself.
    ///
    /// Whoever names one table would otherwise make the rows of all others somebody else's.
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

    /// The parts of another scheme are of no use, and its secrets belong to it.
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
    /// This source with another secret; the one before is accepted until `end`, or not at all.
    ///
    /// - Parameters:
    ///   - secret: the new one; where it is `nil`, one is made of what `randomBytes` returns.
    ///   - end: when the one before ceases to be accepted; `nil` means at once.
    ///   - now: the moment.
    ///   - randomBytes: returns as many unpredictable bytes as it is asked for.
    /// - Returns: The source, and its new secret.
    /// - Throws: ``RelayModel/JSONContractError`` if the scheme has no secret, or another form.
    package func rotated(
        to secret: String?, formerUntil end: Timestamp?, at now: Timestamp,
        randomBytes: (Int) -> [UInt8]
    ) throws(JSONContractError) -> (source: ChangeSource, secret: String) {
        guard verification.scheme != .none else {
            throw JSONContractError(path: "source", reason: "it is verified by no secret")
        }
        if secret == nil, let place = verification.scheme.placeOfSecret {
            throw JSONContractError(path: "secret", reason: "is needed: \(place)")
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

    /// Refuses secrets that are too long or could never be used; one that `former` has was saved
    /// before there was such a rule.
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
