import FoundationEssentials
import RelayModel
import Storage

/// Applies the operations of one request to the subscriptions of one user.
struct SubscriptionStep {
    let owner: SubscriptionOwner
    let container: StoredContainer
    let user: Int64
    let now: Timestamp
    /// The rows that the operations need, read for several operations at once.
    let together = SubscriptionsTogether()

    func run(
        _ edits: [SubscriptionEdit], _ atomicity: EditAtomicity, in commit: inout OpenCommit
    ) throws -> [SubscriptionEditOutcome] {
        together.expect(edits.map { asked($0) })
        return try commit.apply(edits, atomicity) { try apply($0, in: &$1) }
    }

    private func asked(_ edit: SubscriptionEdit) -> SubscriptionsTogether.Asked {
        switch edit {
        case .create(let subscription), .update(let subscription):
            let own = owned(subscription)
            return SubscriptionsTogether.Asked(
                id: own.id, digest: SubscriptionContent(own).digest,
                bytes: JSONValue.object(own.json).utf8.count)
        case .delete(let id):
            return SubscriptionsTogether.Asked(id: id, digest: nil, bytes: 0)
        }
    }

    private func apply(
        _ edit: SubscriptionEdit, in commit: inout OpenCommit
    ) throws -> SubscriptionEditOutcome {
        switch edit {
        case .create(let subscription): try create(owned(subscription), in: &commit)
        case .update(let subscription): try update(owned(subscription), in: &commit)
        case .delete(let id): try delete(id, in: &commit)
        }
    }

    /// Sets the owner of a subscription, which comes from the credential alone.
    private func owned(_ subscription: Subscription) -> Subscription {
        var subscription = subscription
        subscription.container = owner.container
        subscription.database = owner.database
        subscription.owner = owner.user
        return subscription
    }

    private func create(
        _ subscription: Subscription, in commit: inout OpenCommit
    ) throws -> SubscriptionEditOutcome {
        let existing = try active(subscription.id, in: commit)
        if let version = existing?.version {
            let isSame = Self.isSame(version.subscription, subscription)
            return isSame ? .unchanged(version) : .exists(subscription.id)
        }
        let content = SubscriptionContent(subscription)
        if let other = try active(with: content, in: commit), other != subscription.id {
            return .duplicate(of: other)
        }
        if let existing {
            // Its row cannot be read, so it notifies no one. The newly saved one replaces it.
            try end(existing.serial, in: commit)
            return .saved(try save(subscription, content, replacing: existing.serial, in: &commit))
        }
        if let refusal = try refusal(of: subscription, replacing: nil, in: commit) {
            return .overQuota(refusal)
        }
        return .saved(try save(subscription, content, replacing: nil, in: &commit))
    }

    /// Returns whether two subscriptions are equal byte by byte.
    ///
    /// Swift's `==` treats two spellings of the same letter as equal, but a condition on a record's
    /// name differs then.
    ///
    /// The order of a filter's members does not matter, because some clients change it with each
    /// request.
    private static func isSame(_ one: Subscription, _ other: Subscription) -> Bool {
        guard one == other else { return false }
        let form = JSONValue.object(one.storedForm).withMembersByName
        return form.isSpelled(as: JSONValue.object(other.storedForm).withMembersByName)
    }

    private func update(
        _ subscription: Subscription, in commit: inout OpenCommit
    ) throws -> SubscriptionEditOutcome {
        guard let existing = try active(subscription.id, in: commit) else {
            // A disabled subscription is enabled by saving it again.
            return try isDisabled(subscription.id, in: commit)
                ? try create(subscription, in: &commit) : .notFound(subscription.id)
        }
        if let version = existing.version, Self.isSame(version.subscription, subscription) {
            return .unchanged(version)
        }
        let content = SubscriptionContent(subscription)
        if let other = try active(with: content, in: commit), other != subscription.id {
            return .duplicate(of: other)
        }
        if let refusal = try refusal(of: subscription, replacing: existing.bytes, in: commit) {
            return .overQuota(refusal)
        }
        try end(existing.serial, in: commit)
        try release(subscription.id, followedBy: subscription.kindness, in: commit)
        return .saved(try save(subscription, content, replacing: existing.serial, in: &commit))
    }

    /// Releases the held deliveries of a version that ends, so that the settings of its successor
    /// judge them.
    private func release(
        _ id: SubscriptionID, followedBy kindness: SubscriptionKindness?, in commit: OpenCommit
    ) throws {
        let digest = kindness.flatMap { $0.isPaused ? nil : $0.digest }
        try HeldRelease(container: container.id, owner: owner.user.rawValue, now: now).release(
            id, in: owner.database, digest.map { .last(seconds: $0.seconds) } ?? .end, commit.db)
    }

    /// Returns the refusal if a quota does not allow the subscription.
    ///
    /// `bytes` is the size of the version that ends.
    private func refusal(
        of subscription: Subscription, replacing bytes: Int?, in commit: OpenCommit
    ) throws -> QuotaRefusal? {
        if try hasRoomForAll(in: commit) { return nil }
        let size = JSONValue.object(subscription.json).utf8.count
        return try commit.ledger(of: container).refusal(
            of: .subscriptions,
            growingBy: Growth(number: bytes == nil ? 1 : 0, bytes: size - (bytes ?? 0)),
            holder: String(user))
    }

    /// Returns whether there is room for everything that the request can save, so that no exact
    /// calculation is needed.
    private func hasRoomForAll(in commit: OpenCommit) throws -> Bool {
        if let known = together.hasRoom { return known }
        let hasRoom = try commit.ledger(of: container).hasRoom(
            for: .subscriptions, together.most, holder: String(user))
        together.hasRoom = hasRoom
        return hasRoom
    }

    private func delete(
        _ id: SubscriptionID, in commit: inout OpenCommit
    ) throws -> SubscriptionEditOutcome {
        guard let existing = try active(id, in: commit) else {
            return try forgetDisabled(id, in: commit) == nil ? .notFound(id) : .deleted(id)
        }
        try end(existing.serial, in: commit)
        together.forget(id)
        try release(id, followedBy: nil, in: commit)
        let body = LogEntryBody.subscriptionDeleted(serial: existing.serial)
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
        return .deleted(id)
    }

    private func save(
        _ subscription: Subscription, _ content: SubscriptionContent, replacing replaced: UInt64?,
        in commit: inout OpenCommit
    ) throws -> SubscriptionVersion {
        let disabled = try forgetDisabled(subscription.id, in: commit)
        let statement = try commit.db.cachedStatement(
            sql: """
                INSERT INTO subscription
                    (container, owner, database, subscriptionID, contentDigest, firesOnce, body,
                    activation, recordType, kindness, expiresAt)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                RETURNING serial
                """)
        let arguments: StatementArguments = [
            container.id, user, owner.database.rawValue, subscription.id.rawValue,
            Data(content.digest),
            subscription.firesOnce, try subscription.storedText(),
            commit.next.stored, subscription.recordType?.rawValue,
            try subscription.kindness.storedForm.map { try JSONValue.object($0).storedText() },
            subscription.kindness.expiresAt?.stored,
        ]
        let version = SubscriptionVersion(
            serial: UInt64(clamping: try statement.inserted(arguments, in: "subscription")),
            subscription: subscription, activation: commit.next)
        together.noteSaved(subscription.id, saying: content.digest)
        try carryStrikes(to: version.serial, from: replaced, orDisabled: disabled, in: commit)
        let body = LogEntryBody.subscriptionSaved(version, replaced: replaced)
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
        return version
    }

    /// Marks the version as ended by the entry that is appended next.
    private func end(_ serial: UInt64, in commit: OpenCommit) throws {
        together.noteEnd()
        try commit.db.cachedStatement(sql: "UPDATE subscription SET ended = ? WHERE serial = ?")
            .execute(arguments: [commit.next.stored, serial.stored])
    }

    /// Returns the active subscription with this ID, without its version if its row cannot be read.
    private func active(
        _ id: SubscriptionID, in commit: OpenCommit
    ) throws -> (serial: UInt64, bytes: Int, version: SubscriptionVersion?)? {
        guard let row = try activeRow(of: id, in: commit.db) else { return nil }
        let stored = StoredRow(row: row, table: "subscription")
        let serial = stored.number("serial")
        let bytes = (row["body"] as String?)?.utf8.count ?? 0
        guard let body = try? stored.json("body"),
            let subscription = try? Subscription(stored: body, of: owner)
        else { return (serial, bytes, nil) }
        let activation = LogPosition(stored: row["activation"])
        return (
            serial, bytes,
            SubscriptionVersion(serial: serial, subscription: subscription, activation: activation)
        )
    }

    private func activeRow(of id: SubscriptionID, in db: Database) throws -> Row? {
        if let rows = together.rows(named: id) { return rows.first }
        if db.dialect == .postgresql { try lookAhead(from: id, in: db) }
        if let rows = together.rows(named: id) { return rows.first }
        return try Row.fetchOne(
            db.cachedStatement(sql: Self.activeStatement), arguments: name(of: id))
    }

    /// Reads the rows that the next operations name, and the rows with the same content, in two
    /// batches.
    private func lookAhead(from id: SubscriptionID, in db: Database) throws {
        let asked = together.next(from: id)
        let named = try Row.fetchAlls(
            db.cachedStatement(sql: Self.activeStatement),
            arguments: asked.map { one -> StatementArguments in name(of: one.id) })
        for (one, rows) in zip(asked, named) { together.note(rows, named: one.id) }
        let digests = asked.compactMap(\.digest)
        let same = try Row.fetchAlls(
            db.cachedStatement(sql: Self.sameStatement),
            arguments: digests.map { digest -> StatementArguments in name(saying: digest) })
        for (digest, rows) in zip(digests, same) { together.note(rows, saying: digest) }
    }

    private func name(of id: SubscriptionID) -> StatementArguments {
        [user, owner.database.rawValue, id.rawValue]
    }

    private func name(saying digest: [UInt8]) -> StatementArguments {
        [user, owner.database.rawValue, Data(digest)]
    }

    private static let activeStatement = """
        SELECT serial, body, activation FROM subscription
        WHERE owner = ? AND database = ? AND subscriptionID = ? AND ended IS NULL
        """

    private func active(
        with content: SubscriptionContent, in commit: OpenCommit
    ) throws -> SubscriptionID? {
        let row: Row?
        if let rows = together.rows(saying: content.digest) {
            row = rows.first
        } else {
            row = try Row.fetchOne(
                commit.db.cachedStatement(sql: Self.sameStatement),
                arguments: name(saying: content.digest))
        }
        return row.flatMap { SubscriptionID(rawValue: $0[0] as String) }
    }

    private static let sameStatement = """
        SELECT subscriptionID FROM subscription
        WHERE owner = ? AND database = ? AND contentDigest = ? AND ended IS NULL
        """
}

extension SubscriptionEditOutcome: EditOutcome {
    /// Whether the outcome makes an atomic request fail.
    var isRefusal: Bool {
        switch self {
        case .saved, .unchanged, .deleted, .undone: false
        case .notFound, .exists, .duplicate, .overQuota: true
        }
    }
}
