import ChangeSources
import PostgresLink
import RelayModel

/// The stream of a slot: reads rows, and confirms what the relay has.
///
/// It is used by the follower's thread alone, and that protects it.
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
    /// The schemas that hold a relay's store, of those that rows came of.
    private var stores: Set<String> = []
    private var told = PostgresPosition.zero
    private var lastTold = Duration.zero
    private var lastHeard = Duration.zero
    private var lastLooked = Duration.zero - LogStream.lookPause
    private var lastCompared = Duration.zero - LogStream.comparePause
    /// What is said of tables that are not published.
    private var lacking: String?
    private var standbys = StandbyWait()
    /// How far the server has told what it has, with rows or without.
    private var heard = PostgresPosition.zero
    private var asked = false
    /// How many of those whose author could not be read the status has.
    private var authorsNoted: UInt64 = 0
    /// How many of the values that were left out the status has.
    private var leftOutNoted: UInt64 = 0

    /// How long a position that is confirmed may wait to be told.
    private static let confirmPause = Duration.milliseconds(500)
    /// The server gives up whoever says nothing for `wal_sender_timeout`, a minute.
    private static let lifePause = Duration.seconds(10)
    private static let askAfter = Duration.seconds(40)
    private static let silence = Duration.seconds(80)
    /// The time between two looks at what the server keeps.
    private static let lookPause = Duration.seconds(10)
    /// What the server says where it waits for a table longer than it is told to.
    private static let lockNotAvailable = "55P03"
    /// The time between two looks at what is published, which is dearer where much is.
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

    /// Meanwhile it confirms, and shows the server that somebody is there.
    func nextBatch() throws -> RowBatch {
        while true {
            if memory.isStopped { throw ended() }
            try look()
            try drain()
            // While something is posted, the next request is prepared if it is full already.
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

    /// Ends, and tells once more what is confirmed.
    ///
    /// What is not would come again at the next beginning, which may be later than positions are
    /// remembered.
    private func ended() -> CancellationError {
        try? tell(now: true)
        return CancellationError()
    }

    /// Takes what has come, until the buffer is full.
    ///
    /// A server before version 18 refuses to go on where rows changed while the publication was not
    /// there; one of a later version passes over them with a warning.
    ///
    /// It reads only where nothing is left of what was read before: libpq takes in all that the
    /// server sends, and a backlog would come to lie in memory, and not wait in the server.
    private func drain() throws {
        var hasHeard = false
        var hasRead = false
        // What comes again was taken before, and is not taken while this runs.
        let last = memory.last
        while !buffer.isFull {
            let message = try log.message()
            // It stands before whatever comes after what was passed over, so that nothing of that
            // is confirmed, and it is said again at the next beginning.
            guard log.warningsOfWhatLacks == 0 else {
                throw FollowProblem.publicationLost(
                    "rows changed while there was no \(settings.publication)")
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
        // What was sent before it is read; where nothing of it waits, all is done up to there.
        if !reader.isWithinTransaction, buffer.isEmpty {
            memory.change { memory in
                guard memory.isIdle else { return }
                memory.confirmed = max(memory.confirmed, end)
                memory.status.confirmed = memory.confirmed
            }
        }
        if wantsAnswer { try tell(now: true) }
    }

    /// Has rows posted of which all is known.
    private func pass(_ rows: [WaitingRows.Entry]) {
        for entry in rows { buffer.add(entry.row, at: entry.place, bytes: entry.bytes) }
    }

    /// Takes a message of the log, of what begins at `start`; rows up to `last` are there already.
    private func take(
        _ message: LogMessage, from start: PostgresPosition, _ bytes: Int, after last: RowPlace?
    ) throws {
        let steps = try reader.take(message)
        if case .note = message { waiting.name(reader.author) }
        for step in steps {
            switch step {
            case .unknownTable(let relation):
                // What the replica identity was then, the log says itself.
                var key = try catalogue.primaryKey(of: relation.id)
                // Of a table that was dropped since, the order of the key is known from before.
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

    /// Tells the server what is confirmed, as often as it matters.
    private func tell(now isUrgent: Bool = false) throws {
        let confirmed = memory.current.confirmed
        let time = watch()
        let isDue =
            time - lastTold >= (confirmed > told ? Self.confirmPause : Self.lifePause)
        // Who is not listened to is not silent.
        if buffer.isFull { lastHeard = time }
        if time - lastHeard > Self.silence {
            // It says nothing while it passes over a large transaction of which nothing is
            // published, and would begin with that anew.
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

    /// Looks at what the server keeps for the slot, and whether all is published that was named.
    private func look() throws {
        guard watch() - lastLooked >= Self.lookPause else { return }
        lastLooked = watch()
        // The server says so when a row changes; from 18 on it goes on without, and tells of none.
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
                // Somebody alters a published table: what was said of all of them holds meanwhile.
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
        // Where nothing is read, it is not known how far the server has told it.
        let isWaiting = try catalogue.waitsForStandbys(log.serverProcess) && !buffer.isFull
        let isHeldUp = standbys.look(isWaiting: isWaiting, at: heard)
        // Before long the server keeps much because of that, and the relay is not behind.
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
        "PostgreSQL tells nothing until standbys have it, and one of those that "
        + "synchronized_standby_slots names is away, or has no such slot: bring it back, or take "
        + "it out of the setting."

    /// What is said of tables that were named and are not published, as one that is named later:
    /// nobody would notice that their changes never come.
    private func unpublished() throws -> String? {
        // It is asked of the tables themselves, and the changes of all would wait for whoever
        // alters one.
        try catalogue.connection.query("SET lock_timeout = '500ms'")
        defer { _ = try? catalogue.connection.query("SET lock_timeout = 0") }
        let missing = try catalogue.tablesMissing(
            from: settings.publication, of: settings.tables)
        guard !missing.isEmpty else { return nil }
        return "The publication \(settings.publication) lacks tables that were named "
            + "(\(missing.joined(separator: ", "))), and nothing is told of them: "
            + "ALTER PUBLICATION \(settings.publication.shownName) ADD TABLE …, or name those that "
            + "it has."
    }
}
