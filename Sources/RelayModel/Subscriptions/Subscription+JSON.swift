extension Subscription {
    static let members =
        [
            "subscriptionID", "subscriptionType", "query", "firesOn", "firesOnce", "firesWhen",
            "changedKeys", "suppress", "zoneID", "zoneWide", "recordType", "notificationInfo",
        ] + SubscriptionKindness.members

    /// Misspellings that known clients write: cloudkit_flutter sends `fireOnce`.
    static let otherSpellings = ["fireOnce"]

    /// Members that a response adds and a client may send back.
    ///
    /// They are ignored, because the relay decides them.
    static let answerMembers = [
        "activationPosition", "predicateCost", "health", "held", "disabled", "warnings",
    ]

    /// Reads CloudKit's subscription dictionary, with our extensions.
    ///
    /// The canonical text of a query stays empty; the predicate language fills it. CloudKit's
    /// clients disagree about which members belong to which type. So a member that has no effect
    /// for a type is ignored, but an unknown member is refused.
    ///
    /// - Parameters:
    ///   - json: The dictionary.
    ///   - path: The path of the dictionary in the request, for error messages.
    ///   - assignedID: The ID of the subscription if the client names none.
    ///   - owner: The user of the request.
    ///   - container: The container and environment of the request.
    ///   - database: The database of the request.
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(
        json: JSONValue, path: String, assignedID: SubscriptionID, owner: UserID,
        container: ContainerKey, database: DatabaseScope
    ) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(Self.members + Self.otherSpellings + Self.answerMembers)
        let scope = try SubscriptionScope(reader, database: database)
        let options = try FiringOptions(reader, scope: scope)
        self.init(
            id: try reader.identifier("subscriptionID") ?? assignedID, container: container,
            database: database, owner: owner, scope: scope, firesOn: options.firesOn,
            firesOnce: options.firesOnce)
        guard !firesOnce || scope.isQuery else {
            throw reader.failure("firesOnce", "only a query subscription can fire once")
        }
        try readUpdateRule(reader)
        suppress = try reader.choice("suppress") ?? .device
        kindness = try SubscriptionKindness(reader)
        try checkKindness(reader)
        if let info = reader.value("notificationInfo") {
            notificationInfo = try NotificationInfo(
                json: info, path: reader.path(of: "notificationInfo"))
        }
        try checkDigest(reader)
    }

    private func checkDigest(_ reader: JSONReader) throws(JSONContractError) {
        guard let digest = kindness.digest else { return }
        guard !digest.hasTexts || notificationInfo.isVisible else {
            throw reader.failure(
                "digest", "texts are allowed only with a notificationInfo that shows something")
        }
        guard let lifetime = notificationInfo.expirationSeconds, lifetime <= digest.seconds
        else { return }
        throw reader.failure(
            "digest.seconds",
            "must be less than expirationSeconds (\(lifetime)): the digest would be sent after its "
                + "notifications have expired")
    }

    private func checkKindness(_ reader: JSONReader) throws(JSONContractError) {
        guard firesOnce, kindness.isHolding else { return }
        guard !kindness.isPaused else {
            throw reader.failure(
                "paused", "a subscription that fires once cannot be paused: delete it instead")
        }
        guard kindness.throttle == nil, kindness.digest == nil else {
            throw reader.failure(
                kindness.throttle == nil ? "digest" : "throttle",
                "is not allowed for a subscription that fires once: it has no second push")
        }
        throw reader.failure(
            "unlessConnected",
            "is not allowed for a subscription that fires once: its only push is always sent")
    }

    private mutating func readUpdateRule(_ reader: JSONReader) throws(JSONContractError) {
        firesWhen = try reader.choice("firesWhen") ?? .matches
        changedKeys = try reader.fieldNames("changedKeys", atMost: Limits.maximumChangedKeys)
        let isNarrowed = firesWhen != .matches || !changedKeys.isEmpty
        guard isNarrowed, !narrowsUpdates || !scope.isQuery else { return }
        throw reader.failure(
            firesWhen == .matches ? "changedKeys" : "firesWhen",
            "selects among updates: it is allowed only in a query subscription with \"update\" in "
                + "firesOn"
        )
    }

    /// CloudKit's subscription dictionary, with those of our extensions that differ from the
    /// default.
    public var json: JSONObject {
        var object: JSONObject = ["subscriptionID": .string(id.rawValue)]
        switch scope {
        case .query(let query, let zoneID):
            object["subscriptionType"] = "query"
            object["query"] = query.json
            object["zoneID"] = zoneID?.json
            object["firesOn"] = .array(firesOn.operations.map { .string($0.rawValue) })
            object["firesOnce"] = .bool(firesOnce)
            object["firesWhen"] = firesWhen == .matches ? nil : .string(firesWhen.rawValue)
            object.set("changedKeys", changedKeys)
        case .zone(let zoneID, let recordType):
            object["subscriptionType"] = "zone"
            object["zoneID"] = zoneID.json
            object["recordType"] = recordType.map { .string($0.rawValue) }
        case .database(let recordType):
            object["subscriptionType"] = "zone"
            object["zoneWide"] = true
            object["recordType"] = recordType.map { .string($0.rawValue) }
        }
        object["suppress"] = suppress == .device ? nil : .string(suppress.rawValue)
        object["notificationInfo"] = notificationInfo.json
        kindness.write(to: &object)
        return object
    }
}

extension SubscriptionScope {
    /// Whether this is the scope of a query subscription.
    public var isQuery: Bool {
        if case .query = self { true } else { false }
    }

    /// The wire form has two types: a database subscription is a `zone` with `zoneWide: true`.
    init(_ reader: JSONReader, database: DatabaseScope) throws(JSONContractError) {
        let type = try reader.require(
            "subscriptionType", try reader.choice("subscriptionType", as: WireType.self))
        var zoneID: ZoneID?
        if let json = reader.value("zoneID") {
            zoneID = try ZoneID(json: json, path: reader.path(of: "zoneID"))
        }
        let recordType: RecordType? = try reader.identifier("recordType")
        let isZoneWide = try reader.bool("zoneWide") ?? false
        switch type {
        case .query:
            guard database != .shared else {
                throw reader.failure(
                    "subscriptionType", "query subscriptions are not allowed in the shared database"
                )
            }
            let query = try reader.require("query", reader.value("query"))
            self = .query(
                try SubscriptionQuery(json: query, path: reader.path(of: "query")), zoneID: zoneID)
        case .zone, .database:
            if let zoneID, type == .zone {
                self = .zone(zoneID, recordType: recordType)
            } else if isZoneWide || type == .database {
                self = .database(recordType: recordType)
            } else {
                throw reader.failure(
                    "zoneID", "is required, unless zoneWide is true for the whole database")
            }
        }
    }

    /// `database` is CloudKit's native type; its web clients write `zone` with `zoneWide` instead.
    private enum WireType: String, CaseIterable {
        case query, zone, database
    }
}

/// The changes that fire, and whether only one does.
///
/// They are given as names, or as the bits of CloudKit's native options, which ports of native
/// clients have at hand.
private struct FiringOptions {
    let firesOn: FiresOn
    let firesOnce: Bool

    /// The bit of CloudKit's native option "fires once", which is not part of ``FiresOn``.
    private static let once: Int64 = 8

    init(_ reader: JSONReader, scope: SubscriptionScope) throws(JSONContractError) {
        let isOnce = try reader.bool(
            reader.value("firesOnce") == nil ? "fireOnce" : "firesOnce")
        guard scope.isQuery, case .integer(let bits)? = reader.value("firesOn") else {
            firesOn = try FiresOn(reader, scope: scope)
            firesOnce = isOnce ?? false
            return
        }
        let set = FiresOn(rawValue: UInt8(clamping: bits & ~Self.once))
        guard !set.isEmpty, set.isSubset(of: .all) else {
            throw reader.failure(
                "firesOn",
                "\(bits) is not a valid sum of options: 1 is \"create\", 2 \"update\" and 4 "
                    + "\"delete\", of which at least one is required; 8 is to fire once")
        }
        firesOn = set
        firesOnce = isOnce ?? (bits & Self.once != 0)
    }
}

extension FiresOn {
    init(_ reader: JSONReader, scope: SubscriptionScope) throws(JSONContractError) {
        guard scope.isQuery else {
            self = .all
            return
        }
        let words = try reader.require("firesOn", try reader.strings("firesOn"))
        var set: FiresOn = []
        for (index, word) in words.enumerated() {
            guard let operation = ChangeOperation(rawValue: word) else {
                throw reader.failure(
                    "firesOn[\(index)]",
                    "\"\(word)\" is unknown; allowed are \"create\", \"update\", \"delete\"")
            }
            set.insert(FiresOn(operation))
        }
        guard !set.isEmpty else {
            throw reader.failure(
                "firesOn", "at least one of \"create\", \"update\", \"delete\" is required")
        }
        self = set
    }
}

extension SubscriptionQuery {
    static let members = [
        "recordType", "filterBy", "sortBy", "predicate", "predicateArguments", "rql",
        "rqlArguments", "where", "canonicalPredicate",
    ]

    /// Reads CloudKit's query dictionary, or one of our forms of the condition.
    ///
    /// - Throws: ``JSONContractError`` if it has no record type, more than one form of the
    ///   condition, or an unknown member.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(Self.members)
        let forms = PredicateForm.allCases.filter { reader.value($0.rawValue) != nil }
        guard forms.count <= 1 else {
            throw reader.failure(
                forms[1].rawValue,
                "only one form of the condition is allowed; found also \(forms[0].rawValue)"
            )
        }
        let form = forms.first
        let arguments: [JSONValue]
        switch form {
        case .predicate: arguments = try reader.array("predicateArguments") ?? []
        case .rql: arguments = try reader.array("rqlArguments") ?? []
        case .filterBy, .where, nil: arguments = []
        }
        self.init(
            recordType: try reader.require("recordType", try reader.identifier("recordType")),
            form: form, source: form.flatMap { reader.value($0.rawValue) } ?? .null,
            arguments: arguments, canonical: "")
    }

    /// The query dictionary in the form that the client sent, plus the canonical text.
    public var json: JSONValue {
        var object: JSONObject = ["recordType": .string(recordType.rawValue)]
        if let form {
            object[form.rawValue] = source
            if !arguments.isEmpty { object["\(form.rawValue)Arguments"] = .array(arguments) }
        }
        object["canonicalPredicate"] = .string(canonical)
        return .object(object)
    }
}
