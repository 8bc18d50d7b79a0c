import Fanout
import Live
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Parses live queries; their conditions are parsed and checked like those of subscriptions.
///
/// This is an object because a task that works on a set keeps it several times while it waits.
final class LiveQueryReading: Sendable {
    let client: LiveIdentity
    let schema: ContainerSchema
    let version: LiveSchema
    let limits: RequestLimits
    let indexes: IndexDirectory
    let accounts: LiveAccounts
    let store: String
    let storeIdentity: UUIDBytes
    /// The place where long conditions are parsed.
    let bodies: LongBodies
    /// Says whether the container keeps notifications now, which may have changed since `hello`.
    let keepsInbox: @Sendable () async throws -> Bool

    init(
        client: LiveIdentity, schema: ContainerSchema, version: LiveSchema, limits: RequestLimits,
        indexes: IndexDirectory, accounts: LiveAccounts, store: String, storeIdentity: UUIDBytes,
        bodies: LongBodies, keepsInbox: @escaping @Sendable () async throws -> Bool
    ) {
        self.client = client
        self.schema = schema
        self.version = version
        self.limits = limits
        self.indexes = indexes
        self.accounts = accounts
        self.store = store
        self.storeIdentity = storeIdentity
        self.bodies = bodies
        self.keepsInbox = keepsInbox
    }

    static let members = [
        "id", "kind", "database", "zoneID", "recordType", "query", "sortBy", "limit", "start",
        "end", "orderBy", "rules", "desiredKeys", "before", "firesOn", "firesWhen", "changedKeys",
        "suppress",
        "initial", "once", "coalesce", "since", "fingerprint",
    ]

    /// Parses one query of a set; returns it with its charge.
    ///
    /// - Throws: An error that names the member that does not fit.
    func declared(
        _ json: JSONValue, path: String
    ) async throws -> (query: DeclaredQuery, charge: LiveAccounts.Entry?) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(Self.members)
        try checkDatabase(reader)
        let kind: LiveQuery.Kind = try reader.choice("kind") ?? .result
        if kind == .notifications { return (try await inbox(reader), nil) }
        guard !json.isLonger(than: LongBodies.leastOfConditions) else {
            return try await longDeclared(reader, kind, path)
        }
        let draft = try draft(reader, kind)
        let cost = try await indexes.whenFree(draft.container) { try weighed(draft, path) }
        return try finish(draft, cost, reader)
    }

    /// Parses a query that takes long, by turns on a thread that gives way.
    @inline(never)
    private func longDeclared(
        _ reader: JSONReader, _ kind: LiveQuery.Kind, _ path: String
    ) async throws -> (query: DeclaredQuery, charge: LiveAccounts.Entry?) {
        let container = client.settings.key
        let party = QueryParty.user(client.user)
        let draft = try await bodies.apart(of: container, by: party) {
            try self.draft(reader, kind)
        }
        let cost = try await bodies.apart(of: container, by: party) {
            try self.weighed(draft, path)
        }
        return try finish(draft, cost, reader)
    }

    private func weighed(_ draft: Draft, _ path: String) throws -> PredicateCost {
        try PredicateScales(indexes: indexes, limits: limits.costs)
            .weigh(draft.query.subscription, path: path) {
                accounts.isCharged(LiveAccounts.Entry(draft.query.subscription, $0))
            }
    }

    /// Refuses databases that are not open to a server that signs every call.
    private func checkDatabase(_ reader: JSONReader) throws {
        guard client.isSigned else { return }
        let database: DatabaseScope? = try reader.choice("database")
        guard let database, database != .public else { return }
        throw APIError(
            .accessDenied,
            "\(reader.path).database: a server-to-server key may use only the public database, not "
                + "the \(database.rawValue) one")
    }

    /// A query that was parsed, and whose cost has not been checked.
    private final class Draft: Sendable {
        let query: LiveQuery
        let container: ContainerKey
        let grant: ReadGrant
        let fingerprint: String

        init(_ query: LiveQuery, _ grant: ReadGrant, _ fingerprint: String) {
            self.query = query
            container = query.subscription.container
            self.grant = grant
            self.fingerprint = fingerprint
        }
    }

    /// Parses everything about a query that needs no waiting.
    ///
    /// This is a function of its own, because a task that waits keeps all variables of its
    /// function: ten thousand clients that come at the same time would keep 13 kB each.
    @inline(never)
    private func draft(_ reader: JSONReader, _ kind: LiveQuery.Kind) throws -> Draft {
        let subscription = try knownSubscription(reader)
        let type = subscription.recordType
        let definition = type.flatMap { schema.recordTypes[$0] }
        let predicate = try IndexedSubscription(subscription, serial: 0).predicate
        var query = LiveQuery(kind, subscription, form: client.form)
        query.conditionBytes = ConditionRoom.bytes(of: predicate)
        query.desiredKeys = try desiredKeys(reader)
        query.showsBefore = try reader.bool("before") ?? false
        query.beginning = try reader.choice("initial") ?? .current
        query.isOnce = try reader.bool("once") ?? false
        query.coalesces = try reader.bool("coalesce") ?? false
        switch kind {
        case .result:
            try checkResult(reader, definition, predicate)
            try checkEnd(reader, query)
            try readOrder(reader, definition, into: &query)
        case .changes, .notifications:
            for name in Self.orderMembers where reader.value(name) != nil {
                throw reader.failure(
                    name,
                    "is allowed only for a result; changes and notifications come in the order of "
                        + "the log")
            }
        }
        return Draft(
            query, definition?.readGrant ?? .world,
            query.fingerprint(of: client.reader, schema: schemaText(definition)))
    }

    /// Returns the fields that are sent; their number is limited, because each shown record is
    /// searched for all of them.
    private func desiredKeys(_ reader: JSONReader) throws -> [String]? {
        guard let names = try reader.strings("desiredKeys") else { return nil }
        let (most, bytes) = (Limits.maximumFieldsPerRecord, Limits.maximumNameBytes)
        guard names.count <= most, names.allSatisfy({ $0.utf8.count <= bytes }) else {
            throw reader.failure(
                "desiredKeys",
                "at most \(most) fields are allowed, each with at most \(bytes) bytes")
        }
        return Set(names).sorted { IndexedText.order($0, $1) < 0 }
    }

    @inline(never)
    private func finish(
        _ draft: Draft, _ cost: PredicateCost, _ reader: JSONReader
    ) throws -> (query: DeclaredQuery, charge: LiveAccounts.Entry?) {
        let subscription = draft.query.subscription
        var declared = DeclaredQuery(
            id: try name(reader, draft.fingerprint), draft.query, grant: draft.grant,
            fingerprint: draft.fingerprint, details: details(subscription, cost))
        try readPlace(reader, into: &declared)
        return (declared, LiveAccounts.Entry(subscription, cost))
    }

    private func knownSubscription(_ reader: JSONReader) throws -> Subscription {
        do {
            return try subscription(reader)
        } catch var error as APIError {
            switch error.code {
            case .accessDenied: error.details["liveError"] = "deniedType"
            case .notFound: error.details["liveError"] = "unknownType"
            default: break
            }
            throw error
        }
    }

    /// Returns the client's name for the query; without one, the name is the fingerprint, so that
    /// declaring the same query again changes nothing.
    private func name(_ reader: JSONReader, _ fingerprint: String) throws -> String {
        guard let name = try reader.string("id") else { return fingerprint }
        guard (1...255).contains(name.utf8.count), !name.utf8.contains(0) else {
            throw reader.failure("id", "must be 1 to 255 bytes without U+0000")
        }
        return name
    }

    private func details(_ subscription: Subscription, _ cost: PredicateCost) -> JSONObject {
        guard case .query(let query, _) = subscription.scope else { return [:] }
        return ["canonicalPredicate": .string(query.canonical), "predicateCost": cost.json]
    }

    // MARK: The condition

    private func subscription(_ reader: JSONReader) throws -> Subscription {
        let database: DatabaseScope = try reader.choice("database") ?? .public
        guard database != .shared else {
            throw reader.failure(
                "database",
                "the shared database does not support queries; allowed are \"public\", \"private\"")
        }
        let user = client.user
        guard client.namesUser || database == .public else {
            throw APIError(
                .authenticationRequired,
                "\(reader.path).database: the \(database.rawValue) database belongs to a user; the "
                    + "request must name a user")
        }
        var form: JSONObject = ["subscriptionType": "query"]
        var query: JSONObject = [:]
        if let given = try reader.reader("query") { query = given.object }
        if let type = reader.value("recordType") {
            let _: RecordType? = try reader.identifier("recordType")
            let named = query["recordType"] ?? .null
            guard named == .null || named == type else {
                throw reader.failure("recordType", "does not match the recordType in the query")
            }
            query["recordType"] = type
        }
        form["query"] = .object(query)
        // Only by names: CloudKit's bit mask has a bit that would end the subscription.
        _ = try reader.strings("firesOn")
        form["firesOn"] = reader.value("firesOn") ?? ["create", "update", "delete"]
        form["suppress"] = reader.value("suppress") ?? "none"
        for name in ["zoneID", "firesWhen", "changedKeys"] { form[name] = reader.value(name) }
        guard try reader.choice("kind", as: LiveQuery.Kind.self) != .changes else {
            return try subscription(form, user, database, reader.path)
        }
        for name in ["firesOn", "firesWhen", "changedKeys", "suppress"]
        where reader.value(name) != nil {
            throw reader.failure(
                name,
                "is allowed only for \"kind\": \"changes\"; a result shows all records that match")
        }
        return try subscription(form, user, database, reader.path)
    }

    private func subscription(
        _ form: JSONObject, _ user: UserID, _ database: DatabaseScope, _ path: String
    ) throws -> Subscription {
        let reading = SubscriptionOperationReading(
            owner: SubscriptionOwner(
                container: client.settings.key, database: database, user: user),
            limits: limits, schema: schema, assignedID: "live")
        return try reading.subscription(JSONReader(.object(form), path: path))
    }

    private func checkResult(
        _ reader: JSONReader, _ definition: RecordTypeDefinition?, _ predicate: RecordPredicate?
    ) throws {
        guard let definition else {
            throw APIError(
                .notFound,
                "\(reader.path).recordType: this record type is unknown; add it to the container's "
                    + "schema as a type that is kept, or use \"kind\": \"changes\"",
                details: ["liveError": "unknownType"])
        }
        guard definition.isKept else {
            throw APIError(
                .badRequest,
                "\(reader.path).recordType: the relay does not keep records of this type, so it "
                    + "cannot show a result; use \"kind\": \"changes\", or keep the type in the "
                    + "container's schema",
                details: ["liveError": "notKept"])
        }
        if predicate?.readsClock == true {
            throw reader.failure(
                "query",
                "a result cannot use now(), because it would change as time passes; write the time "
                    + "itself and declare the query again when needed")
        }
    }

    /// Refuses a result that would end at once without showing anything.
    ///
    /// A query that continues from a position is allowed, because it shows what has happened since.
    private func checkEnd(_ reader: JSONReader, _ query: LiveQuery) throws {
        guard query.isOnce, query.beginning == .none, reader.value("since") == nil else { return }
        throw reader.failure(
            "once",
            "a result with \"once\" ends after its initial records, which \"initial\" leaves out; "
                + "use \"kind\": \"changes\", or remove the query after its first event")
    }

    /// Returns what must be unchanged for a client to continue from its position.
    ///
    /// That includes the number of changes of grants. After a change that was taken back, the
    /// schema is the same again, but the client was sent only a part of what happened in between.
    private func schemaText(_ definition: RecordTypeDefinition?) -> String {
        let type = definition.map { "\($0.isKept) \($0.readGrant)" } ?? "none"
        return schema.readGeneration == 0 ? type : "\(type) \(schema.readGeneration)"
    }

    // MARK: The inbox

    /// Parses a query of notifications.
    private func inbox(_ reader: JSONReader) async throws -> DeclaredQuery {
        let own = ["id", "kind", "database", "initial", "since", "fingerprint"]
        for name in Self.members where !own.contains(name) && reader.value(name) != nil {
            throw reader.failure(
                name, "is not allowed for notifications, which come as they were sent")
        }
        guard try await keepsInbox() else {
            throw APIError(
                .badRequest,
                "\(reader.path(of: "kind")): this container keeps no notifications: an operator "
                    + "can switch this on with `belfry containers set --inbox on`",
                details: ["liveError": "notKept"])
        }
        let database: DatabaseScope? = try reader.choice("database")
        let user = client.user
        let everything = try subscription(
            ["subscriptionType": "database"], user, database ?? .private, reader.path)
        var query = LiveQuery(.notifications, everything, form: client.form)
        query.inboxDatabase = database
        query.beginning = try reader.choice("initial") ?? .current
        let fingerprint = query.fingerprint(of: client.reader, schema: "")
        var declared = DeclaredQuery(
            id: try name(reader, fingerprint), query, grant: .world, fingerprint: fingerprint)
        guard let since = try reader.string("since") else { return declared }
        let owner = InboxOwner(container: client.settings.key, user: user)
        do throws(APIError) {
            declared.after = try NotificationToken(since, owner: owner, store: storeIdentity)
                .sequence
        } catch {
            guard error.details["changeTokenExpired"] != nil else {
                throw reader.failure(
                    "since", "must be a syncToken from a notification or from notifications/list")
            }
            declared.reset = .foreign
        }
        return declared
    }

    // MARK: Coming back

    private func readPlace(_ reader: JSONReader, into declared: inout DeclaredQuery) throws {
        guard let since = try reader.string("since") else { return }
        let fingerprint = try reader.string("fingerprint")
        guard let token = LiveToken(since) else {
            throw reader.failure("since", "must be a token that the relay sent in \"at\"")
        }
        (declared.since, declared.entryMark) = (token.position, token.mark)
        if token.store != store {
            declared.reset = .foreign
        } else if fingerprint != declared.fingerprint {
            declared.reset = .changed
        }
    }
}
