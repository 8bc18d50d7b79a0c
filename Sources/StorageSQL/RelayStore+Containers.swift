import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func save(
        _ container: ContainerSettings, at now: Timestamp,
        checking check: @escaping @Sendable () throws -> Void
    ) async throws {
        let credential = container.credential
        let topics = try JSONValue.array(container.topics.map { .string($0) }).storedText()
        let name = container.key.container.rawValue
        let environment = container.key.environment.rawValue
        func sealed(_ text: String?, _ column: String) throws -> String? {
            try text.map {
                try settings.secrets.seal(
                    $0, at: SecretPlace.container(column, name, environment))
            }
        }
        let arguments: StatementArguments = [
            name, environment, topics,
            credential?.teamID, credential?.keyID,
            try sealed(credential?.privateKeyPEM, "privateKeyPEM"),
            try sealed(container.userTokens?.storedForm.storedText(), "userTokens"),
            container.expirationSeconds, now.stored,
            try sealed(container.certificate?.storedForm.storedText(), "certificate"),
            container.keepsInbox, container.sessions?.minutes ?? 0, container.sessions?.days ?? 0,
            try container.costs.json?.storedText(), try container.quotas.json?.storedText(),
            try container.rates.json?.storedText(),
        ]
        try await write { commit in
            try check()
            try commit.db.execute(
                sql: """
                    INSERT INTO container
                        (name, environment, topics, teamID, keyID, privateKeyPEM, userTokens,
                        expirationSeconds, savedAt, certificate, keepsInbox, sessionMinutes,
                        sessionDays, costLimits, quotas, rates)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (name, environment) DO UPDATE SET topics = excluded.topics,
                        teamID = excluded.teamID, keyID = excluded.keyID,
                        privateKeyPEM = excluded.privateKeyPEM, userTokens = excluded.userTokens,
                        certificate = excluded.certificate,
                        expirationSeconds = excluded.expirationSeconds, savedAt = excluded.savedAt,
                        keepsInbox = excluded.keepsInbox,
                        sessionMinutes = excluded.sessionMinutes,
                        sessionDays = excluded.sessionDays,
                        costLimits = excluded.costLimits, quotas = excluded.quotas,
                        rates = excluded.rates
                    """, arguments: arguments)
        }
        containerSettings.forget(container.key)
        if !container.keepsInbox { inboxes.tell(container: container.key) }
    }

    package func container(_ key: ContainerKey) async throws -> ContainerSettings? {
        let secrets = settings.secrets
        return try await containerSettings.value(of: key, inDoubt: engine.isInDoubt) {
            try await read { db in
                try Row.fetchOne(
                    db,
                    sql: """
                        SELECT *, name AS containerName FROM container
                        WHERE name = ? AND environment = ?
                        """, arguments: [key.container.rawValue, key.environment.rawValue]
                ).map { try ContainerSettings(row: $0, secrets) }
            }
        }
    }

    package func containers() async throws -> [ContainerSettings] {
        let secrets = settings.secrets
        return try await read { db in
            try Row.fetchAll(
                db,
                sql: "SELECT *, name AS containerName FROM container ORDER BY name, environment"
            ).map { try ContainerSettings(row: $0, secrets) }
        }
    }

    /// The maximum number of revoked keys that are kept for one container, so that lists can show
    /// that they existed.
    static let mostRevokedKeys = 1000

    package func save(_ key: AccessKey) async throws {
        try await write { commit in
            let container = try commit.container(key.container)
            try commit.db.execute(
                sql: """
                    INSERT INTO accessKey
                        (container, id, kind, verifier, label, createdAt, revokedAt)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (container, id) DO UPDATE SET kind = excluded.kind,
                        verifier = excluded.verifier, label = excluded.label,
                        createdAt = excluded.createdAt, revokedAt = excluded.revokedAt
                    """,
                arguments: [
                    container.id, key.id, key.kind.rawValue, key.verifier, key.label,
                    key.createdAt.stored, key.revokedAt?.stored,
                ])
            // Without this limit, creating and revoking keys again and again would make the list
            // grow forever.
            try commit.db.execute(
                sql: """
                    DELETE FROM accessKey WHERE container = ?1 AND id IN (
                        SELECT id FROM accessKey WHERE container = ?1 AND revokedAt IS NOT NULL
                        ORDER BY revokedAt DESC, id LIMIT -1 OFFSET ?2)
                    """, arguments: [container.id, Self.mostRevokedKeys])
        }
        keysOfContainers.forget(key.container)
    }

    package func accessKeys(of container: ContainerKey) async throws -> [AccessKey] {
        let keys = try await keysOfContainers.value(of: container, inDoubt: engine.isInDoubt) {
            let keys = try await rows(
                of: container,
                sql: "SELECT * FROM accessKey WHERE container = ? ORDER BY createdAt DESC, id"
            ) { row in
                let stored = StoredRow(row: row, table: "accessKey")
                var key = AccessKey(
                    id: row["id"], container: container, kind: try stored.choice("kind"),
                    verifier: row["verifier"], label: row["label"],
                    createdAt: stored.moment("createdAt"))
                key.revokedAt = (row["revokedAt"] as Int64?).map(Timestamp.init(stored:))
                return key
            }
            return keys.isEmpty ? nil : keys
        }
        return keys ?? []
    }

    package func revokeAccessKey(
        _ id: String, of container: ContainerKey, at now: Timestamp
    ) async throws -> Bool {
        defer { keysOfContainers.forget(container) }
        return try await change(
            container,
            sql: """
                UPDATE accessKey SET revokedAt = ?2
                WHERE container = ?1 AND id = ?3 AND revokedAt IS NULL
                """, arguments: [now.stored, id]) > 0
    }

    package func save(_ source: StoredSource) async throws {
        let definition = try settings.secrets.seal(
            source.definition.storedText(path: "definition"),
            at: SecretPlace.source(
                source.name.rawValue, source.container.container.rawValue,
                source.container.environment.rawValue))
        try await write { commit in
            let container = try commit.container(source.container)
            try commit.db.execute(
                sql: """
                    INSERT INTO changeSource (container, name, definition, savedAt)
                    VALUES (?, ?, ?, ?)
                    ON CONFLICT (container, name) DO UPDATE SET definition = excluded.definition,
                        savedAt = excluded.savedAt
                    """,
                arguments: [
                    container.id, source.name.rawValue, definition, source.savedAt.stored,
                ])
        }
        sourcesOfContainers.forget(source.container)
    }

    package func source(
        _ name: SourceName, of container: ContainerKey
    ) async throws -> StoredSource? {
        try await sources(of: container).first { $0.name == name }
    }

    package func sources(of container: ContainerKey) async throws -> [StoredSource] {
        let secrets = settings.secrets
        let sources = try await sourcesOfContainers.value(
            of: container, inDoubt: engine.isInDoubt
        ) {
            let sources = try await rows(
                of: container, sql: "SELECT * FROM changeSource WHERE container = ? ORDER BY name"
            ) { try StoredSource(row: $0, container: container, secrets) }
            return sources.isEmpty ? nil : sources
        }
        return sources ?? []
    }

    package func deleteSource(
        _ name: SourceName, of container: ContainerKey
    ) async throws -> Bool {
        defer { sourcesOfContainers.forget(container) }
        return try await change(
            container, sql: "DELETE FROM changeSource WHERE container = ? AND name = ?",
            arguments: [name.rawValue]) > 0
    }

    package func saveProviderToken(_ token: StoredProviderToken) async throws {
        let sealed = try settings.secrets.seal(
            token.token,
            at: SecretPlace.providerToken(
                token.teamID, token.keyID, token.environment.rawValue))
        try await write { commit in
            try commit.db.execute(
                sql: """
                    INSERT INTO providerToken (teamID, keyID, environment, token, issuedAt)
                    VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (teamID, keyID, environment) DO UPDATE SET
                        token = excluded.token, issuedAt = excluded.issuedAt
                    """,
                arguments: [
                    token.teamID, token.keyID, token.environment.rawValue, sealed,
                    token.issuedAt.stored,
                ])
            // Signing keys are replaced without notice to the store, so tokens of old keys would
            // stay forever.
            try commit.db.execute(
                sql: "DELETE FROM providerToken WHERE issuedAt < ?",
                arguments: [
                    token.issuedAt.advanced(by: .zero - StoredProviderToken.keptFor).stored
                ])
        }
    }

    package func providerTokens() async throws -> [StoredProviderToken] {
        let secrets = settings.secrets
        return try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM providerToken").map { row in
                let stored = StoredRow(row: row, table: "providerToken")
                let place = SecretPlace.providerToken(
                    row["teamID"], row["keyID"], row["environment"])
                return StoredProviderToken(
                    teamID: row["teamID"], keyID: row["keyID"],
                    environment: try stored.choice("environment"),
                    token: try secrets.open(row["token"], at: place),
                    issuedAt: stored.moment("issuedAt"))
            }
        }
    }

    /// Reads rows of one container, whose number is the first argument, or none if the container is
    /// unknown.
    func rows<Value: Sendable>(
        of key: ContainerKey, sql: String, arguments: StatementArguments = [],
        _ make: @escaping @Sendable (Row) throws -> Value
    ) async throws -> [Value] {
        try await read { db in
            guard let container = try db.containerIfKnown(key) else { return [] }
            return try Row.fetchAll(db, sql: sql, arguments: [container.id] + arguments).map(make)
        }
    }

    /// Runs a statement on rows of one container, whose number is the first argument, and returns
    /// the number of changed rows.
    func change(
        _ key: ContainerKey, sql: String, arguments: StatementArguments
    ) async throws -> Int {
        try await write { commit in
            guard let container = try commit.db.containerIfKnown(key) else { return 0 }
            return try commit.db.executeCounting(sql: sql, arguments: [container.id] + arguments)
        }
    }
}

extension ContainerSettings {
    init(row: Row, _ secrets: SecretVault) throws {
        func opened(_ column: String) throws -> String? {
            try (row[column] as String?).map {
                try secrets.open(
                    $0,
                    at: SecretPlace.container(column, row["containerName"], row["environment"]))
            }
        }
        let stored = StoredRow(row: row, table: "container")
        guard case .array(let topics) = try stored.json("topics") else {
            throw stored.damage("topics")
        }
        self.init(
            key: try stored.containerKey(),
            topics: try topics.map { topic in
                guard case .string(let text) = topic else { throw stored.damage("topics") }
                return text
            })
        if let teamID = row["teamID"] as String?, let key = try opened("privateKeyPEM") {
            credential = ProviderCredential(
                teamID: teamID, keyID: row["keyID"], privateKeyPEM: key)
        }
        if let text = try opened("certificate") {
            certificate = try ProviderCertificate(
                storedForm: try stored.json(text, of: "certificate"))
        }
        if let text = try opened("userTokens") {
            userTokens = try UserTokenSettings(
                storedForm: try stored.json(text, of: "userTokens"))
        }
        expirationSeconds = row["expirationSeconds"]
        keepsInbox = row["keepsInbox"]
        let minutes: Int = row["sessionMinutes"]
        sessions = minutes > 0 ? SessionSettings(minutes: minutes, days: row["sessionDays"]) : nil
        if row["costLimits"] as String? != nil {
            costs = try CostBounds(JSONReader(try stored.json("costLimits")))
        }
        if row["quotas"] as String? != nil { quotas = try stored.quotas() }
        if row["rates"] as String? != nil { rates = try stored.rates() }
    }
}

extension StoredSource {
    init(row: Row, container: ContainerKey, _ secrets: SecretVault) throws {
        let stored = StoredRow(row: row, table: "changeSource")
        let text = try secrets.open(
            row["definition"],
            at: SecretPlace.source(
                row["name"], container.container.rawValue, container.environment.rawValue))
        self.init(
            container: container, name: try stored.identifier("name"),
            definition: try stored.json(text, of: "definition"), savedAt: stored.moment("savedAt"))
    }
}
