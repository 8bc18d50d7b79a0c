import ChangeSources
import PostgresLink
import RelayModel

/// The stream of a replication slot, which reads rows and confirms what the relay has taken.
///
/// Concurrency: only the follower's thread uses it.
final class LogStream: RowStream, @unchecked Sendable {
    private let log: PostgresConnection
    private let catalogue: Catalogue
    private let memory: FollowMemory
    private let watch: @Sendable () -> Duration
    private let settings: FollowSettings
    private var reader: LogReader
    private var buffer = RowBuffer()
    private var waiting = WaitingRows()
    private var types: TypeCatalogue
    /// The schemas that contain a relay's store, among those of the followed tables.
    private var stores: Set<String> = []
    private var told = PostgresPosition.zero
    private var lastTold = Duration.zero
    private var lastHeard = Duration.zero
    private var lastLooked = Duration.zero - LogStream.lookPause
    private var lastCompared = Duration.zero - LogStream.comparePause
    /// The warning about configured tables that are not published.
    private var lacking: String?
    private var standbys = StandbyWait()
    /// How far the server has sent its log, with or without rows.
    private var heard = PostgresPosition.zero
    private var asked = false
    /// The number of unread authors that the status includes already.
    private var authorsNoted: UInt64 = 0
    /// The number of left-out values that the status includes already.
    private var leftOutNoted: UInt64 = 0

    /// How long a confirmed position may wait before it is sent.
    private static let confirmPause = Duration.milliseconds(500)
    /// The interval of status messages: the server disconnects a client that is silent for
    /// `wal_sender_timeout`, one minute by default.
    private static let lifePause = Duration.seconds(10)
    private static let askAfter = Duration.seconds(40)
    private static let silence = Duration.seconds(80)
    /// The time between two checks of what the server keeps for the slot.
    private static let lookPause = Duration.seconds(10)
    /// The SQLSTATE for a lock on a table that was not available in time.
    private static let lockNotAvailable = "55P03"
    /// The time between two checks of the publication, which cost more if it has many tables.
    private static let comparePause = Duration.seconds(60)

    init(
        _ log: PostgresConnection, catalogue: Catalogue, types: TypeCatalogue,
        timelines: Timelines, memory: FollowMemory, settings: FollowSettings,
        watch: @escaping @Sendable () -> Duration
    ) {
        self.log = log
        self.catalogue = catalogue
        self.types = types
        self.memory = memory
        self.settings = settings
        self.watch = watch
        reader = LogReader(timelines: timelines, database: log.database)
        lastHeard = watch()
    }

    /// While it waits, it confirms positions and keeps the connection alive.
    func nextBatch() throws -> RowBatch {
        while true {
            if memory.isStopped { throw ended() }
            try look()
            try drain()
            // While a batch is posted, the next one is prepared if it is full already.
            if buffer.isFull || buffer.hasSomething && memory.isIdle {
                let batch = buffer.take()
                if batch.rows.isEmpty {
                    memory.confirm(batch)
                    continue
                }
                memory.change { $0.outstanding += 1 }
                return batch
            }
            try tell()
            log.wait(toRead: !buffer.isFull, for: Self.confirmPause)
        }
    }

    func awaitTurn() throws {
        while memory.outstanding > RowBatch.mostReady {
            if memory.isStopped { throw ended() }
            try look()
            try drain()
            try tell()
            log.wait(toRead: !buffer.isFull, for: Self.confirmPause)
        }
    }

    /// Ends the stream, and sends the confirmed position once more.
    ///
    /// Everything after the confirmed position is sent again at the next start, when taken rows may
    /// no longer be remembered.
    private func ended() -> CancellationError {
        try? tell(now: true)
        return CancellationError()
    }

    /// Takes what has arrived, until the buffer is full.
    ///
    /// If rows changed while the publication did not exist, a server before version 18 refuses to
    /// continue, and a later one skips them with a warning. It reads from the socket only once
    /// everything read before is handled. libpq reads everything that the server sends, and a
    /// backlog would otherwise be in memory instead of in the server.
    private func drain() throws {
        var hasHeard = false
        var hasRead = false
        // Rows up to this one arrive again; no row is taken while this runs.
        let last = memory.last
        while !buffer.isFull {
            let message = try log.message()
            // The warning arrives before everything after the skipped changes. So nothing of that
            // is confirmed, and the warning comes again at the next start.
            guard log.warningsOfWhatLacks == 0 else {
                throw FollowProblem.publicationLost(
                    "rows were changed while there was no \(settings.publication)")
            }
            guard let bytes = message else {
                if hasRead { break }
                hasRead = true
                try log.receive()
                continue
            }
            hasHeard = true
            switch try StreamMessage(bytes) {
            case .data(let start):
                heard = start
                pass(waiting.take(before: start))
                let message = try LogMessage(bytes, from: StreamMessage.dataStart)
                try take(message, from: start, bytes.count, after: last)
            case .keepalive(let end, let wantsAnswer):
                heard = end
                try take(keepalive: end, wantsAnswer)
            }
        }
        guard hasHeard else { return }
        lastHeard = watch()
        asked = false
        if reader.authorsUnread > authorsNoted {
            let new = reader.authorsUnread - authorsNoted
            authorsNoted = reader.authorsUnread
            memory.change { $0.status.authorsUnread += new }
        }
    }

    private func take(keepalive end: PostgresPosition, _ wantsAnswer: Bool) throws {
        // Everything sent before this message was read; if no row of it waits, everything up to
        // there is done.
        if !reader.isWithinTransaction, buffer.isEmpty {
            memory.change { memory in
                guard memory.isIdle else { return }
                memory.confirmed = max(memory.confirmed, end)
                memory.status.confirmed = memory.confirmed
            }
        }
        if wantsAnswer { try tell(now: true) }
    }

    /// Adds rows to the buffer whose authors are certain now.
    private func pass(_ rows: [WaitingRows.Entry]) {
        for entry in rows { buffer.add(entry.row, at: entry.place, bytes: entry.bytes) }
    }

    /// Takes a message of the log that begins at `start`; rows up to `last` were taken already.
    private func take(
        _ message: LogMessage, from start: PostgresPosition, _ bytes: Int, after last: RowPlace?
    ) throws {
        let steps = try reader.take(message)
        if case .note = message { waiting.name(reader.author) }
        for step in steps {
            switch step {
            case .unknownTable(let relation):
                // The log itself says which replica identity the table had then.
                var key = try catalogue.primaryKey(of: relation.id)
                // For a table that was dropped since, the order of its key is known from before.
                if key.isEmpty { key = reader.formerKey(of: relation) }
                if !relation.has(key) {
                    let columns = try catalogue.columns(
                        of: relation.id, by: settings.publication)
                    key = relation.formerNames(of: key, among: columns) ?? key
                }
                if !relation.columns.allSatisfy({ types.knows($0.type) }) {
                    types = try catalogue.types()
                }
                stores.formUnion(try catalogue.stores(among: [relation.schema]))
                let generated = try catalogue.generatedIdentity(of: relation)
                reader.learn(
                    TableShape(
                        relation, namingKey: key, types: types,
                        isIdentityTold: relation.has(generated),
                        isPartitioned: try catalogue.isPartitioned(relation.id),
                        isKeyDeferrable: try catalogue.isKeyDeferrable(relation.id)))
            case .row(let row, let place):
                if let last, place <= last { continue }
                if !stores.isEmpty, stores.contains(row.schema) { continue }
                if Catalogue.isOutbox(schema: row.schema, table: row.table) { continue }
                let entry = WaitingRows.Entry(row: row, place: place, bytes: bytes)
                waiting.add(entry, from: start)
            case .committed(_, let end):
                pass(waiting.take())
                buffer.complete(end: end)
            }
        }
    }

    /// Sends the confirmed position if it is due.
    private func tell(now isUrgent: Bool = false) throws {
        let confirmed = memory.current.confirmed
        let time = watch()
        let isDue =
            time - lastTold >= (confirmed > told ? Self.confirmPause : Self.lifePause)
        // While the buffer is full nothing is read, so the server does not count as silent.
        if buffer.isFull { lastHeard = time }
        if time - lastHeard > Self.silence {
            // A server sends nothing while it skips a large transaction without published changes.
            // After a new connection it would begin with that transaction again.
            guard try catalogue.hasProcess(log.serverProcess) else {
                throw PostgresError(state: "", message: "the server is silent")
            }
            lastHeard = time
            asked = false
        }
        let asks = time - lastHeard > Self.askAfter && !asked
        guard isDue || isUrgent || asks else { return }
        asked = asked || asks
        try log.put(StreamMessage.status(confirmed: confirmed, wantsAnswer: asks))
        told = confirmed
        lastTold = time
    }

    /// Checks what the server keeps for the slot, and whether all configured tables are published.
    private func look() throws {
        guard watch() - lastLooked >= Self.lookPause else { return }
        lastLooked = watch()
        // A server reports a missing publication when a row changes. Since version 18 it continues
        // without it, and sends no changes.
        guard let publication = try catalogue.publication(settings.publication) else {
            throw FollowProblem.publicationMissing(settings.publication)
        }
        try catalogue.require(
            settings.publication, numbered: publication, as: memory.current.publication)
        guard let slot = try catalogue.slot(settings.slot) else { return }
        if watch() - lastCompared >= Self.comparePause {
            lastCompared = watch()
            do {
                lacking = try unpublished()
            } catch let error as PostgresError where error.state == Self.lockNotAvailable {
                // A published table is being altered. The old warning stays meanwhile.
            }
            memory.note(
                try catalogue.members(of: settings.publication, since: settings.slot))
            let leftOut = try catalogue.operationsLeftOut(of: settings.publication)
            let refusing = try catalogue.refusing(of: settings.publication)
            memory.change { memory in
                memory.status.operationsLeftOut = leftOut
                memory.status.refusing = refusing
            }
        }
        // While nothing is read, it is unknown how far the server has sent its log.
        let isWaiting = try catalogue.waitsForStandbys(log.serverProcess) && !buffer.isFull
        let isHeldUp = standbys.look(isWaiting: isWaiting, at: heard)
        // The waiting soon makes the server keep much of its log, for which the relay is not the
        // cause.
        let said = [
            isHeldUp ? Self.heldUpByStandbys : nil, slot.warning(over: settings.retainedWarning),
        ].compactMap { $0 }
        let warning = said.isEmpty ? lacking : said.joined(separator: " ")
        let leftOut = reader.valuesLeftOut - leftOutNoted
        leftOutNoted = reader.valuesLeftOut
        memory.change { memory in
            memory.status.behindBytes = slot.behindBytes
            memory.status.retainedBytes = slot.retainedBytes
            memory.status.lacksFailover = slot.lacksFailover
            memory.status.valuesLeftOut += leftOut
            memory.status.warning = warning
        }
    }

    private static let heldUpByStandbys =
        "PostgreSQL reports changes only once the standbys named in synchronized_standby_slots "
        + "have them, and one of these is away, or has no such slot: bring it back, or remove it "
        + "from the setting."

    /// Returns a warning if configured tables are not published, because no error would show that
    /// their changes never come.
    private func unpublished() throws -> String? {
        // The query locks the tables themselves, and a session that alters one of them would delay
        // the changes of all.
        try catalogue.connection.query("SET lock_timeout = '500ms'")
        defer { _ = try? catalogue.connection.query("SET lock_timeout = 0") }
        let missing = try catalogue.tablesMissing(
            from: settings.publication, of: settings.tables)
        guard !missing.isEmpty else { return nil }
        return "The publication \(settings.publication) lacks tables that were named "
            + "(\(missing.joined(separator: ", "))), so their changes are not reported: ALTER "
            + "PUBLICATION \(settings.publication.shownName) ADD TABLE …, or name those that it "
            + "has."
    }
}
