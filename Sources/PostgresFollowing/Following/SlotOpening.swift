import ChangeSources
import PostgresLink
import RelayModel

/// Opens a server that is followed by a replication slot.
///
/// Concurrency: only the follower's thread uses it.
final class SlotOpening: RowOrigin, @unchecked Sendable {
    private let settings: FollowSettings
    private let memory: FollowMemory
    private let watch: @Sendable () -> Duration
    private let catalogue: Catalogue
    private var log: PostgresConnection?
    private var temporary: String?
    /// Whether the slot existed already.
    private var isOlder = false
    /// The OID of the publication, if it existed already.
    private var publication: String?
    private var types = TypeCatalogue()
    private var timelines = Timelines()

    /// Opens the connection for everything except the log, and checks the server.
    ///
    /// - Throws: ``FollowProblem``.
    init(
        _ settings: FollowSettings, memory: FollowMemory, watch: @escaping @Sendable () -> Duration
    ) throws {
        self.settings = settings
        self.memory = memory
        self.watch = watch
        catalogue = Catalogue(
            try ServerAccess.connect(settings, memory, watch, isReplication: false))
        try ServerAccess.told {
            try check()
            types = try catalogue.types()
        }
    }

    private func check() throws {
        let level = try catalogue.walLevel
        guard level == "logical" else { throw FollowProblem.walLevel(level) }
        let role = try catalogue.role()
        guard role.mayReplicate else { throw FollowProblem.noReplicationRight(role: role.name) }
        guard let publication = try catalogue.publication(settings.publication) else {
            guard settings.makes, !memory.current.hasFollowed else {
                throw FollowProblem.publicationMissing(settings.publication)
            }
            try catalogue.requireTables(settings.tables)
            let nameless = try catalogue.tablesWithoutIdentity(settings.tables, limit: 4)
            guard nameless.isEmpty else {
                throw FollowProblem.identityMissing(Self.some(nameless))
            }
            let virtual = try catalogue.tablesWithVirtualIdentity(settings.tables, limit: 4)
            guard virtual.isEmpty else {
                throw FollowProblem.identityVirtual(Self.some(virtual))
            }
            try catalogue.makePublication(settings.publication, tables: settings.tables)
            return
        }
        self.publication = publication
        // The warning is set now, because writers are blocked already while a snapshot is still
        // read.
        let refusing = try catalogue.refusing(of: settings.publication)
        memory.change { $0.status.refusing = refusing }
    }

    private static func some(_ tables: [String]) -> String {
        tables.prefix(3).joined(separator: ", ") + (tables.count > 3 ? " and others" : "")
    }

    /// Returns whether the slot exists; throws if it cannot be followed.
    func goesOn() throws -> Bool {
        let slot = try usableSlot()
        isOlder = slot != nil
        try openLog()
        // This comes after the check of the cluster, because another cluster has another
        // publication.
        if let publication {
            try catalogue.require(
                settings.publication, numbered: publication, as: memory.current.publication)
        }
        if let confirmed = slot?.confirmed { try compare(confirmed: confirmed) }
        if let restored = settings.restored, let slot, !memory.current.hasFollowed,
            let problem = restored.problem(
                settings.slot, confirmed: slot.confirmed, on: timelines)
        {
            throw problem
        }
        return slot != nil
    }

    private func usableSlot() throws -> Catalogue.Slot? {
        try ServerAccess.told {
            guard let slot = try catalogue.slot(settings.slot) else { return nil }
            if slot.keeping == "lost" { throw FollowProblem.slotLost(settings.slot) }
            guard slot.plugin == "pgoutput" else {
                let kind =
                    slot.plugin.map { "has the plugin \($0)" } ?? "is for physical replication"
                throw FollowProblem.slotOfOtherKind("\(settings.slot) \(kind)")
            }
            guard slot.database == catalogue.connection.database else {
                throw FollowProblem.slotOfOtherKind(
                    "\(settings.slot) belongs to the database \(slot.database ?? "")")
            }
            guard !slot.tellsPrepared else {
                throw FollowProblem.slotOfOtherKind(
                    "\(settings.slot) was made with two_phase, and reports transactions before "
                        + "they are committed")
            }
            if slot.isActive { throw FollowProblem.slotTaken("\(settings.slot) is active") }
            return slot
        }
    }

    /// Opens the connection for the log.
    private func openLog() throws {
        let log = try ServerAccess.connect(settings, memory, watch, isReplication: true)
        self.log = log
        let written = try ServerAccess.told {
            let identity = try log.query("IDENTIFY_SYSTEM").first ?? []
            guard identity.count > 2 else {
                throw FollowProblem.serverRefused("it does not identify itself")
            }
            timelines = try Self.timelines(
                of: identity[0] ?? "", identity[1].flatMap { Int64($0) } ?? 1, log)
            return identity[2].flatMap { PostgresPosition($0) } ?? .zero
        }
        if let former = memory.current.timelines, former.system != timelines.system {
            throw FollowProblem.otherServer(expected: former.system, found: timelines.system)
        }
        try compare(written: written)
        let found = timelines
        memory.change { $0.timelines = found }
    }

    private static func timelines(
        of system: String, _ current: Int64, _ log: PostgresConnection
    ) throws -> Timelines {
        guard current > 1 else { return Timelines(system: system) }
        do {
            let rows = try log.query("TIMELINE_HISTORY \(current)")
            return Timelines(
                system: system, current: current, history: rows.first?.last.flatMap { $0 } ?? "")
        } catch let error as PostgresError where !error.state.isEmpty {
            // PostgreSQL itself also assumes that a timeline without a history file has no earlier
            // ones.
            return Timelines(system: system, current: current)
        }
    }

    /// Compares the server's log with what was read of it before.
    ///
    /// A promoted server may lack the end of what its predecessor sent. It is followed from the
    /// slot's position, and not from a position that it has not reached yet. If it writes the same
    /// positions again on the same timeline, later changes cannot be distinguished from earlier
    /// ones.
    private func compare(written: PostgresPosition) throws {
        let contents = memory.current
        if let problem = contents.wentBack { throw problem }
        guard let known = contents.timelines,
            !timelines.hasAll(of: known, upTo: contents.confirmed, written: written)
        else { return }
        guard timelines.current <= known.current else {
            memory.goBack(to: timelines.end(of: known.current) ?? .zero)
            return
        }
        let problem = FollowProblem.serverWentBack(
            "its log ends at \(written), but was read up to \(contents.confirmed)")
        memory.change { $0.wentBack = problem }
        throw problem
    }

    /// Compares the slot's position with what this follower confirmed, because nothing else may
    /// move the slot.
    private func compare(confirmed: PostgresPosition) throws {
        let own = memory.current.confirmed
        guard own > .zero, confirmed > own else { return }
        throw FollowProblem.slotMoved(
            "\(settings.slot) is confirmed up to \(confirmed), but this follower confirmed only up "
                + "to \(own)")
    }

    // MARK: Making a slot

    /// Creates a slot that lasts as long as the connection, and reads the rows as of its beginning.
    ///
    /// The permanent slot is created from it when the relay has all rows (``keep()``). So a
    /// follower that is killed earlier begins again, and an existing slot means that the snapshot
    /// is complete.
    func begin() throws -> SnapshotReader? {
        guard settings.makes, !memory.current.hasFollowed, let log else {
            throw FollowProblem.slotMissing(settings.slot)
        }
        return try ServerAccess.told {
            let tables = try catalogue.tables(of: settings.publication)
            guard !tables.isEmpty else {
                throw FollowProblem.publicationEmpty(settings.publication)
            }
            // An existing publication may lack tables, and no error would show that their changes
            // never come.
            let missing = try catalogue.tablesMissing(
                from: settings.publication, of: settings.tables)
            guard missing.isEmpty else {
                throw FollowProblem.tablesNotPublished(
                    publication: settings.publication, tables: missing.joined(separator: ", "))
            }
            let name = "\(settings.slot.prefix(50))_begins"
            // The server waits for open transactions, however long they take.
            var looked = watch()
            defer { memory.change { $0.status.warning = nil } }
            let made = try log.query(
                "CREATE_REPLICATION_SLOT \(name.quotedName) TEMPORARY LOGICAL pgoutput "
                    + (settings.takesSnapshot ? "EXPORT_SNAPSHOT" : "NOEXPORT_SNAPSHOT"),
                within: nil
            ) {
                guard watch() - looked >= Self.lookPause else { return }
                looked = watch()
                let holder = try catalogue.transaction(thatHoldsUp: log.serverProcess)
                memory.change { $0.status.warning = holder.map(Self.heldUp) }
            }
            temporary = name
            // Without this check, the lack would show only after all rows were read, again and
            // again.
            guard try catalogue.hasRoomForSlot() else {
                throw FollowProblem.serverFull(
                    "a snapshot needs two replication slots until it ends, but only one is free")
            }
            guard settings.takesSnapshot, let row = made.first,
                let start = row.text(1).flatMap({ PostgresPosition($0) }),
                let snapshot = row.text(2)
            else { return nil }
            let connection = catalogue.connection
            try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try connection.query("SET TRANSACTION SNAPSHOT \(snapshot.quotedText)")
            // Queried again: a transaction that the slot waited for may have created tables and
            // columns, and the rows that it wrote are not in the log after the slot.
            types = try catalogue.types()
            return SnapshotReader(
                connection,
                origin: "\(timelines.prefix(at: start))/\(start)/snapshot",
                version: timelines.version(of: start),
                tables: try catalogue.tables(of: settings.publication), types: types,
                reportsDeletions: try !catalogue.operationsLeftOut(of: settings.publication)
                    .contains("DELETE")
            ) { [catalogue, settings] id in
                let tables = try catalogue.tables(of: settings.publication)
                guard let table = tables.first(where: { $0.relation.id == id }) else { return nil }
                return (table: table, types: try catalogue.types())
            }
        }
    }

    /// Checks what the server keeps, on the connection for the log, which is idle while the other
    /// one reads rows.
    func look() throws {
        guard let temporary, let log else { return }
        let slot = try ServerAccess.told { try Catalogue(log).slot(temporary) }
        guard let slot else { return }
        let warning = slot.warning(over: settings.retainedWarning)
        memory.change { memory in
            memory.status.retainedBytes = slot.retainedBytes
            memory.status.warning = warning
        }
    }

    /// The time between two checks of what the creation of a slot waits for.
    private static let lookPause = Duration.seconds(3)

    private static func heldUp(by holder: String) -> String {
        "PostgreSQL creates the slot when the transactions that were open, in any database of "
            + "the server, have ended: one is still open (\(holder)); end it."
    }

    /// Makes the slot permanent, once the relay has the snapshot.
    func keep() throws {
        guard let temporary, let log else { return }
        try ServerAccess.told {
            try catalogue.copySlot(temporary, to: settings.slot)
            // The temporary slot would keep the server's log from here on, as long as the
            // connection lasts.
            try log.query("DROP_REPLICATION_SLOT \(temporary.quotedName)")
            try mark(by: log)
        }
        self.temporary = nil
    }

    /// Marks the slot for failover, if the server supports that; neither a temporary slot nor a
    /// copy has the mark.
    ///
    /// If the server refuses, the slot is followed all the same, and the status says so.
    private func mark(by log: PostgresConnection) throws {
        guard try catalogue.slot(settings.slot)?.lacksFailover == true else { return }
        do {
            try log.query("ALTER_REPLICATION_SLOT \(settings.slot.quotedName) (FAILOVER)")
        } catch let error as PostgresError where !error.state.isEmpty {
            // A managed server may not allow it.
        }
    }

    /// Checks which tables were removed from the publication and added again while no follower ran.
    ///
    /// The server silently skips the changes in between. A follower that has just started knows
    /// only which tables are new.
    private func lookAtMembers() throws {
        let members = try catalogue.members(of: settings.publication, since: settings.slot)
        let isFirst = isOlder && !memory.current.hasFollowed
        memory.note(members)
        guard isFirst else { return }
        memory.change { $0.status.tablesNew = members.filter(\.isNew).map(\.name) }
    }

    /// Starts to follow.
    func stream() throws -> any RowStream {
        guard let log else { throw FollowProblem.slotMissing(settings.slot) }
        return try ServerAccess.told {
            // Everything up to the slot's position was taken, and the server may first send earlier
            // positions.
            if let slot = try catalogue.slot(settings.slot) {
                memory.change { memory in
                    if let confirmed = slot.confirmed {
                        memory.confirmed = max(memory.confirmed, confirmed)
                    }
                    memory.status.lacksFailover = slot.lacksFailover
                }
            }
            if let publication = try catalogue.publication(settings.publication) {
                memory.change { $0.publication = publication }
            }
            try lookAtMembers()
            // From the confirmed position; the server uses the higher one of it and the slot's.
            try log.query(
                "START_REPLICATION SLOT \(settings.slot.quotedName) LOGICAL "
                    + "\(memory.current.confirmed) (proto_version '1', publication_names "
                    + "\(settings.publication.quotedName.quotedText), messages 'true')")
            return LogStream(
                log, catalogue: catalogue, types: types, timelines: timelines, memory: memory,
                settings: settings, watch: watch)
        }
    }
}
