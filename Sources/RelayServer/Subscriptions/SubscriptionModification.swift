import Fanout
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// The body of `subscriptions/modify`: the operations, and the form of their outcomes.
struct SubscriptionModification: Sendable {
    /// One operation, with the cost of its predicate and its entry among the conditions being
    /// saved.
    struct Operation: Sendable {
        let edit: SubscriptionEdit
        let cost: PredicateCost?
        let weight: ConditionsUnderWay.Entry?
    }

    private let request: ItemisedRequest<Operation>
    private let underWay: ConditionsUnderWay
    /// Whether a refused operation undoes the others.
    let atomicity: EditAtomicity
    /// The subscriptions whose conditions were too costly in addition to the saved ones.
    let heavy: [SubscriptionID]

    /// Parses the body.
    ///
    /// The conditions count as being saved until ``settle(_:in:)``. `known` are subscriptions that
    /// some of the saved ones replace.
    ///
    /// - Throws: An error that makes the whole request unreadable.
    init(
        _ body: JSONReader, owner: SubscriptionOwner, limits: RequestLimits,
        schema: ContainerSchema, lifetime: Int64? = nil,
        indexes: IndexDirectory = IndexDirectory(),
        insteadOf known: [SubscriptionID: SubscriptionVersion],
        at now: Timestamp, assignID: () -> String
    ) throws {
        let scales = PredicateScales(indexes: indexes, limits: limits.costs)
        underWay = indexes.underWay
        try body.allowOnly(["operations", "atomic"] + SubscriptionRoutes.idleMembers)
        let elements = try body.operations(within: limits)
        atomicity = try body.bool("atomic") == true ? .allOrNothing : .independent
        var heavy: [SubscriptionID] = []
        request = ItemisedRequest(elements, of: .subscription) { element, path in
            let reading = SubscriptionOperationReading(
                owner: owner, limits: limits, schema: schema, assignedID: assignID(),
                lifetime: lifetime)
            let edit = try reading.edit(element, path: path, at: now)
            do {
                return try Self.weighed(
                    edit, insteadOf: known[edit.subscriptionID], on: scales, path: path)
            } catch {
                heavy.append(edit.subscriptionID)
                throw error
            }
        }
        self.heavy = heavy
    }

    /// The operations to apply; `nil` if an atomic request has been refused already.
    var edits: [SubscriptionEdit]? { request.operations(atomicity)?.map(\.edit) }

    /// Returns the answer's entries, one for each operation, in order; `outcomes` and `warnings`
    /// belong to ``edits``.
    func entries(
        outcomes: [SubscriptionEditOutcome], _ warnings: [[PredicateWarning]], uuid: String
    ) -> [JSONValue] {
        var rest = warnings[...]
        return request.entries(outcomes, uuid: uuid) { operation, outcome in
            let warnings = rest.popFirst() ?? []
            return (outcome ?? .undone).entry(
                subscriptionID: operation.edit.subscriptionID, cost: operation.cost,
                warnings: warnings, uuid: uuid)
        }
    }

    /// Reports the outcomes of ``edits``; without outcomes, nothing was saved.
    func settle(_ outcomes: [SubscriptionEditOutcome], in container: ContainerKey) {
        for (item, outcome) in request.judged(outcomes) {
            guard case .operation(let operation) = item, let weight = operation.weight else {
                continue
            }
            var position: LogPosition?
            if case .saved(let version)? = outcome { position = version.activation }
            underWay.settle(weight, savedAt: position, in: container)
        }
    }

    private static func weighed(
        _ edit: SubscriptionEdit, insteadOf former: SubscriptionVersion?,
        on scales: PredicateScales, path: String
    ) throws -> Operation {
        switch edit {
        case .create(let subscription), .update(let subscription):
            let place = "\(path).subscription"
            let weighed = try scales.weigh(saved: subscription, insteadOf: former, path: place)
            return Operation(
                edit: edit, cost: weighed.cost,
                weight: try scales.begin(subscription, costing: weighed, path: place))
        case .delete: return Operation(edit: edit, cost: nil, weight: nil)
        }
    }
}

/// Parses one operation.
struct SubscriptionOperationReading {
    let owner: SubscriptionOwner
    let limits: RequestLimits
    let schema: ContainerSchema
    let assignedID: String
    /// The container's lifetime of a push in seconds, if known.
    var lifetime: Int64? = nil

    private enum Kind: String, CaseIterable {
        case create, update, delete
    }

    func edit(
        _ element: JSONValue, path: String, at now: Timestamp
    ) throws -> SubscriptionEdit {
        let reader = try JSONReader(element, path: path)
        try reader.allowOnly(["operationType", "subscription"])
        let kind: Kind = try reader.require("operationType", try reader.choice("operationType"))
        let subscription = try reader.require("subscription", try reader.reader("subscription"))
        switch kind {
        case .create: return .create(try self.subscription(subscription, savedAt: now))
        case .update:
            _ = try writtenID(subscription)
            return .update(try self.subscription(subscription, savedAt: now))
        case .delete: return .delete(try writtenID(subscription))
        }
    }

    private func writtenID(_ reader: JSONReader) throws -> SubscriptionID {
        try reader.require("subscriptionID", try reader.identifier("subscriptionID"))
    }

    /// Parses and checks the dictionary of a subscription that is saved, or would be.
    ///
    /// - Throws: An error that names the member that does not fit, also if the subscription has
    ///   expired at `now`.
    func subscription(_ reader: JSONReader, savedAt now: Timestamp) throws -> Subscription {
        let subscription = try subscription(reader)
        guard let moment = subscription.kindness.expiresAt, subscription.kindness.isOver(at: now)
        else { return subscription }
        throw APIError(
            .badRequest,
            "\(reader.path).expiresAt: must be later than now, found \(moment.iso8601)")
    }

    /// Parses and checks the dictionary of a subscription, regardless of the time.
    ///
    /// - Throws: An error that names the member that does not fit.
    func subscription(_ reader: JSONReader) throws -> Subscription {
        guard let assigned = SubscriptionID(rawValue: assignedID) else {
            preconditionFailure("an assigned ID must be a subscription ID")
        }
        var subscription = try Subscription(
            json: .object(completed(reader.object)), path: reader.path, assignedID: assigned,
            owner: owner.user, container: owner.container, database: owner.database)
        try checkRecordType(subscription, path: reader.path)
        try checkDigest(subscription, path: reader.path(of: "digest.seconds"))
        subscription.scope = try completed(
            subscription.scope, firesOn: subscription.firesOn, path: reader.path(of: "query"))
        try checkChangedKeys(subscription, path: reader.path(of: "changedKeys"))
        subscription.notificationInfo.dropEmptyTexts()
        if let fault = subscription.notificationInfo.unsendable {
            throw APIError(
                .badRequest, "\(reader.path).notificationInfo.\(fault.member): \(fault.rule)")
        }
        if !subscription.notificationInfo.isVisible {
            // CloudKit sends such pushes too, invisibly; APNs takes them as background pushes only.
            subscription.notificationInfo.shouldSendContentAvailable = true
        }
        return subscription
    }

    /// Refuses a digest that ends after its pushes expire by the container's rule.
    private func checkDigest(_ subscription: Subscription, path: String) throws(APIError) {
        guard let digest = subscription.kindness.digest, let lifetime,
            subscription.notificationInfo.expirationSeconds == nil, lifetime <= digest.seconds
        else { return }
        throw APIError(
            .badRequest,
            "\(path): must be less than the container's expirationSeconds (\(lifetime)), unless "
                + "notificationInfo has its own: otherwise the digest would expire before it is "
                + "sent")
    }

    /// Refuses system fields: each update changes some of them, and none changes the others;
    /// sources list neither.
    private func checkChangedKeys(_ subscription: Subscription, path: String) throws(APIError) {
        let keys = subscription.changedKeys
        guard let index = keys.firstIndex(where: { SystemField(named: $0) != nil }) else { return }
        throw APIError(
            .badRequest,
            "\(path)[\(index)]: \"\(keys[index])\" is a system field, not a field of the record; "
                + "every update changes when and by whom a record was modified, and none changes "
                + "its name or its creation")
    }

    /// Returns the dictionary, completed with the types of filters that the client left to the
    /// schema.
    private func completed(_ object: JSONObject) -> JSONObject {
        guard case .object(let query)? = object["query"],
            case .string(let name)? = query["recordType"]
        else { return object }
        let definition = RecordType(rawValue: name).flatMap { schema.recordTypes[$0] }
        var object = object
        object["query"] = .object(FilterTypes(definition: definition).completed(query: query))
        return object
    }

    private func checkRecordType(_ subscription: Subscription, path: String) throws {
        guard let type = subscription.recordType?.rawValue else { return }
        // A subscription that is only checked has no path.
        let place = path.isEmpty ? "" : "\(path): "
        for pattern in limits.deniedRecordTypes
        where WildcardPattern(pattern).matches(type) {
            throw APIError(
                .accessDenied,
                "\(place)the record type \"\(type.shortened)\" does not allow subscriptions "
                    + "(denied by \"\(pattern)\")")
        }
        // In production only promoted types are known, as in CloudKit; a container without a schema
        // accepts whatever its databases send.
        if owner.container.environment == .production, schema.isRegistered,
            let name = subscription.recordType, schema.recordTypes[name] == nil
        {
            throw APIError(.notFound, "\(place)did not find record type: \(name)")
        }
    }

    /// Sets the canonical text, and refuses a condition that cannot be meant.
    private func completed(
        _ scope: SubscriptionScope, firesOn: FiresOn, path: String
    ) throws -> SubscriptionScope {
        guard case .query(var query, let zoneID) = scope else {
            guard case .zone(let zoneID, let type) = scope else { return scope }
            return .zone(own(zoneID), recordType: type)
        }
        do throws(PredicateError) {
            try query.checkArguments()
            let predicate = try query.recordPredicate(implying: impliedOwner)
            let schema = known(of: query.recordType)
            try predicate.check(schema: schema)
            try query.checkFlexibleSync(schema: schema)
            try query.checkLists(schema: schema)
            try checkKnowable(predicate, firesOn, query.recordType)
            query.canonical = predicate.canonicalText
        } catch {
            throw error.refusal(of: query, path: path)
        }
        return .query(query, zoneID: zoneID.map(own))
    }

    /// Refuses a condition on what the relay cannot know: it learns when and by whom a record was
    /// created from the creation, or remembers it for records that it keeps.
    private func checkKnowable(
        _ predicate: RecordPredicate, _ firesOn: FiresOn, _ type: RecordType
    ) throws(PredicateError) {
        guard schema.recordTypes[type]?.isKept != true else { return }
        for name in (predicate.fieldsRead ?? []).sorted() {
            let needed: FiresOn
            switch SystemField(named: name) {
            case nil, .recordID, .recordName: continue
            case .creationDate, .creator, .creatorName: needed = .create
            case .modificationDate, .modifier, .modifierName: needed = [.create, .update]
            }
            guard firesOn.isDisjoint(with: needed) else { continue }
            let words = needed.operations.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
            throw PredicateError(
                .check,
                "`\(name)` is never known for these changes: the relay "
                    + (schema.recordTypes[type] == nil
                        ? "does not know the type \(type) yet and keeps no records of it"
                        : "does not keep records of type \(type)"),
                found: name,
                expected: "\(words) in firesOn, or a record type that the schema keeps")
        }
    }

    /// The user whose name as a zone's owner means the same as no owner, in the private database;
    /// answers name the owner, and clients send it back.
    private var impliedOwner: UserID? { owner.database.impliedOwner(owner.user) }

    private func own(_ zoneID: ZoneID) -> ZoneID { zoneID.implying(impliedOwner) }

    /// Returns the schema that conditions on a record type are checked against.
    ///
    /// An inferred definition has only the fields that happened to arrive. Then only what holds for
    /// every record is known, and which fields had references.
    private func known(of type: RecordType) -> RecordSchema {
        guard let definition = schema.recordTypes[type] else { return .ofAnyRecord }
        return definition.isInferred ? .inferred(definition) : .ofConditions(definition)
    }
}

/// A pattern in which `*` stands for any text; names are compared as bytes.
struct WildcardPattern {
    private let parts: [[UInt8]]

    init(_ pattern: String) {
        parts = pattern.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
            .map { Array($0) }
    }

    /// Returns whether the pattern matches the whole of `name`.
    func matches(_ name: String) -> Bool {
        guard let first = parts.first, let last = parts.last else { return name.isEmpty }
        var rest = Array(name.utf8)[...]
        guard parts.count > 1 else { return rest.elementsEqual(first) }
        guard rest.count >= first.count + last.count, rest.starts(with: first),
            rest.suffix(last.count).elementsEqual(last)
        else { return false }
        rest = rest.dropFirst(first.count).dropLast(last.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            let bytes = rest
            guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: part) })
            else { return false }
            rest = bytes[(place + part.count)...]
        }
        return true
    }
}

extension SubscriptionEdit {
    /// The ID of the subscription that the operation is about.
    var subscriptionID: SubscriptionID {
        switch self {
        case .create(let subscription), .update(let subscription): subscription.id
        case .delete(let id): id
        }
    }
}

extension SubscriptionEditOutcome {
    /// Returns the entry of the answer.
    func entry(
        subscriptionID id: SubscriptionID, cost: PredicateCost? = nil,
        warnings: [PredicateWarning] = [], uuid: String
    ) -> JSONValue {
        switch self {
        case .saved(let version), .unchanged(let version): Self.entry(version, cost, warnings)
        case .deleted: ["subscriptionID": .string(id.rawValue), "deleted": true]
        case .notFound, .exists, .duplicate, .overQuota, .undone:
            error(id).entry("subscriptionID", .string(id.rawValue), uuid: uuid)
        }
    }

    private static func entry(
        _ version: SubscriptionVersion, _ cost: PredicateCost?, _ warnings: [PredicateWarning]
    ) -> JSONValue {
        var object = version.json
        object["predicateCost"] = cost?.json
        if !warnings.isEmpty {
            object["warnings"] = .array(warnings.map { .object($0.json) })
        }
        return .object(object)
    }

    private func error(_ id: SubscriptionID) -> APIError {
        switch self {
        case .notFound: APIError(.notFound, "there is no subscription \"\(id)\"")
        case .exists:
            APIError(
                .exists,
                "a subscription \"\(id)\" with other content exists; use operationType \"update\"")
        case .duplicate(let existing):
            APIError(
                .exists, "subscription is duplicate of '\(existing)'",
                details: ["duplicateOf": .string(existing.rawValue)])
        case .overQuota(let refusal): APIError(refusal)
        case .undone: .undone
        case .saved, .unchanged, .deleted:
            preconditionFailure("a success is no error")
        }
    }
}
