import ChangeSources
import PostgresLink
import RelayModel

/// Opens a server that is followed by a replication slot.
///
/// It is used by the follower's thread alone, and that protects it.
final class SlotOpening: RowOrigin, @unchecked Sendable {
    private let settings: FollowSettings
    private let memory: FollowMemory
    private let watch: @Sendable () -> Duration
    private let catalogue: Catalogue
    private var log: PostgresConnection?
    private var temporary: String?
    /// Whether the slot was there already.
    private var isOlder = false
    /// The number of the publication, where it was there already.
    private var publication: String?
    private var types = TypeCatalogue()
    private var timelines = Timelines()

    /// Connects for all but the log, and looks at the server.
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
        // Nobody waits for the end of a snapshot to be told that nothing can be written.
        let refusing = try catalogue.refusing(of: settings.publication)
        memory.change { $0.status.refusing = refusing }
    }

    private static func some(_ tables: [String]) -> String {
        tables.prefix(3).joined(separator: ", ") + (tables.count > 3 ? " and others" : "")
    }

    /// Whether the slot is there; a slot that cannot be followed is a problem.
    func goesOn() throws -> Bool {
        let slot = try usableSlot()
        isOlder = slot != nil
        try openLog()
        // Another cluster has another publication, which nobody made anew.
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
                throw FollowProblem.slotOfOtherKind(
                    "\(settings.slot) has the plugin \(slot.plugin ?? "of physical replication")")
            }
            guard slot.database == catalogue.connection.database else {
                throw FollowProblem.slotOfOtherKind(
                    "\(settings.slot) belongs to the database \(slot.database ?? "")")
            }
            guard !slot.tellsPrepared else {
                throw FollowProblem.slotOfOtherKind(
                    "\(settings.slot) was made with two_phase, and tells transactions before they "
                        + "are committed")
            }
            if slot.isActive { throw FollowProblem.slotTaken("\(settings.slot) is active") }
            return slot
        }
    }

    /// Connects for the log.
    private func openLog() throws {
        let log = try ServerAccess.connect(settings, memory, watch, isReplication: true)
        self.log = log
        let written = try ServerAccess.told {
            let identity = try log.query("IDENTIFY_SYSTEM").first ?? []
            guard identity.count > 2 else {
                throw FollowProblem.serverRefused("it does not say who it is")
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
            // PostgreSQL, too, takes a timeline without a file for one that has none before it.
            return Timelines(system: system, current: current)
        }
    }

    /// Compares the server's log with what was read of it before.
    ///
    /// A server that was promoted may lack the end of what the one before it had told: it is
    /// followed from where its slot says, and not from behind what it has not written yet. Where it
    /// writes the same places anew on the same timeline, nobody can tell later changes from earlier
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
            "its log ends at \(written), and was read up to \(contents.confirmed)")
        memory.change { $0.wentBack = problem }
        throw problem
    }

    /// Compares where the slot stands with what was confirmed from here: nothing else moves it.
    private func compare(confirmed: PostgresPosition) throws {
        let own = memory.current.confirmed
        guard own > .zero, confirmed > own else { return }
        throw FollowProblem.slotMoved(
            "\(settings.slot) is confirmed up to \(confirmed), and was from here up to \(own)")
    }

    // MARK: Making a slot

    /// Makes a slot that lasts as long as the connection, and reads the rows as they were then.
    ///
    /// The slot that lasts is made of it when the relay has them all (``keep()``): whoever is
    /// killed before begins anew, and a slot that is there means that the snapshot is complete.
    func begin() throws -> SnapshotReader? {
        guard settings.makes, !memory.current.hasFollowed, let log else {
            throw FollowProblem.slotMissing(settings.slot)
        }
        return try ServerAccess.told {
            let tables = try catalogue.tables(of: settings.publication)
            guard !tables.isEmpty else {
                throw FollowProblem.publicationEmpty(settings.publication)
            }
            // Of a publication that was there, nobody would notice that changes never come.
            let missing = try catalogue.tablesMissing(
                from: settings.publication, of: settings.tables)
            guard missing.isEmpty else {
                throw FollowProblem.tablesNotPublished(
                    publication: settings.publication, tables: missing.joined(separator: ", "))
            }
            let name = "\(settings.slot.prefix(50))_begins"
            // The server waits for transactions that are open, however long they take.
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
            // It would be found out when all rows have been read, each time anew.
            guard try catalogue.hasRoomForSlot() else {
                throw FollowProblem.serverFull(
                    "a snapshot needs two replication slots until it ends, and there is one")
            }
            guard settings.takesSnapshot, let row = made.first,
                let start = row.text(1).flatMap({ PostgresPosition($0) }),
                let snapshot = row.text(2)
            else { return nil }
            let connection = catalogue.connection
            try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try connection.query("SET TRANSACTION SNAPSHOT \(snapshot.quotedText)")
            // Asked anew: a transaction that the slot waited for may have made tables and columns,
            // and nothing that comes after the slot tells of the rows that it wrote into them.
            types = try catalogue.types()
            return SnapshotReader(
                connection,
                origin: "\(timelines.prefix(at: start))/\(start)/snapshot",
                version: timelines.version(of: start),
                tables: try catalogue.tables(of: settings.publication), types: types
            ) { [catalogue, settings] id in
                let tables = try catalogue.tables(of: settings.publication)
                guard let table = tables.first(where: { $0.relation.id == id }) else { return nil }
                return (table: table, types: try catalogue.types())
            }
        }
    }

    /// By the connection for the log, on which nothing goes on yet: the other one reads rows.
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

    /// The time between two looks at what the making of a slot waits for.
    private static let lookPause = Duration.seconds(3)

    private static func heldUp(by holder: String) -> String {
        "PostgreSQL makes the slot when the transactions that were open have ended, in any "
            + "database of the server: one is still open (\(holder)); end it."
    }

    /// Makes the slot last, once the relay has the snapshot.
    func keep() throws {
        guard let temporary, let log else { return }
        try ServerAccess.told {
            try catalogue.copySlot(temporary, to: settings.slot)
            // It would keep the server's log from here on for as long as the connection lasts.
            try log.query("DROP_REPLICATION_SLOT \(temporary.quotedName)")
            try mark(by: log)
        }
        self.temporary = nil
    }

    /// Marks the slot as one that outlasts a failover, where the server knows such slots: a
    /// temporary one cannot be, and a copy is not.
    ///
    /// Where the server refuses, the slot is followed all the same, and the status says it.
    private func mark(by log: PostgresConnection) throws {
        guard try catalogue.slot(settings.slot)?.lacksFailover == true else { return }
        do {
            try log.query("ALTER_REPLICATION_SLOT \(settings.slot.quotedName) (FAILOVER)")
        } catch let error as PostgresError where !error.state.isEmpty {
            // A managed server may not let it.
        }
    }

    /// Looks what was taken out of the publication, and put back, while nobody followed: the server
    /// passes over what was changed in between without a word.
    ///
    /// Who has not followed before knows only what is in it lately.
    private func lookAtMembers() throws {
        let members = try catalogue.members(of: settings.publication, since: settings.slot)
        let isFirst = isOlder && !memory.current.hasFollowed
        memory.note(members)
        guard isFirst else { return }
        memory.change { $0.status.tablesNew = members.filter(\.isNew).map(\.name) }
    }

    /// Begins to follow.
    func stream() throws -> any RowStream {
        guard let log else { throw FollowProblem.slotMissing(settings.slot) }
        return try ServerAccess.told {
            // What the slot says is taken, and the server may first speak of places before it.
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
            // From where it was confirmed; the server takes the higher of both.
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
