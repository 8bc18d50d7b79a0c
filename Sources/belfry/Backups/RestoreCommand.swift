import ArgumentParser
import FoundationEssentials
import LogShipping
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Makes a store from a copy, or from continuous backups.
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Make a store of a copy, or of continuous backups, and check it first.",
        discussion: """
            The store goes on where the copy ends, or at the moment that --at names. It has an \
            identity of its own, so that its pushes do not take the apns-id of others. The copy \
            stays as it is. No relay may be running on the file. The command reads continuous \
            backups with the backup settings of the configuration. A store on PostgreSQL is \
            brought back by PostgreSQL's own means; after that, --database with its URL, and \
            nothing else, checks it and gives it an identity of its own.
            """)

    @Argument(help: "The backup, or another copy of a relay's file.") var copy: String?
    @Option(help: "Where continuous backups are, instead: file:///FOLDER or s3://BUCKET/PREFIX.")
    var from: String?
    @Option(help: "The moment to go back to, such as 2026-11-25T20:15:00Z (default: the last).")
    var at: String?
    @Option(
        help: "The file to make, or the URL of a database that was brought back.",
        completion: .file())
    var database = StoreSettings.usualPath
    @Option(help: "The schema of the database (default: belfry).") var schema: String?
    @Flag(help: "Move an existing file aside, as FILE-replaced, with its write-ahead log.")
    var replace = false
    @Option(help: "The configuration file, for --from.", completion: .file()) var config: String?
    @Flag(help: "Show JSON.") var json = false

    func validate() throws {
        try NamedStore.check(schema, of: database, called: "--schema")
        if isServer {
            guard copy == nil, from == nil, at == nil, !replace else {
                throw ValidationError(
                    "a store on PostgreSQL is restored by PostgreSQL's own means, such as "
                        + "pg_basebackup with an archive of its log; after that, --database with "
                        + "its URL, and nothing else, gives it an identity of its own")
            }
            return
        }
        guard (copy == nil) != (from == nil) else {
            throw ValidationError("name a copy, or continuous backups with --from")
        }
        if let copy {
            try NamedStore.requireName(copy)
            try Self.checkSingle(copy)
        }
        if copy != nil, at != nil {
            throw ValidationError("--at needs --from: a single copy has only one moment")
        }
        guard from != nil || config == nil else {
            throw ValidationError("--config needs --from: it says how the backups are reached")
        }
        _ = try moment()
    }

    private var isServer: Bool { NamedStore.isServer(database) }

    /// Checks that `copy` is not a folder, and not the URL of continuous backups.
    private static func checkSingle(_ copy: String) throws {
        if let place = BackupPlace(copy) {
            throw ValidationError(
                "\(place) is a place of continuous backups, and not a copy: write --from \(place)")
        }
        guard FileManager.default.isFolder(copy) else { return }
        let folder = URL(filePath: copy).standardizedFileURL.path
        throw ValidationError(
            "\(copy) is a folder: name a copy in it; or, if a relay ships to it, write "
                + "--from file://\(folder)")
    }

    /// Returns the moment to go back to.
    ///
    /// Without an offset, it is in UTC.
    private func moment() throws -> Timestamp? {
        guard let at else { return nil }
        guard let moment = Timestamp(iso8601: at, with: .seconds), moment.isPlausible else {
            throw ValidationError(
                "--at \"\(at)\" must be a date and time in ISO 8601, such as 2026-11-25T20:15:00Z")
        }
        // Moments are shown in milliseconds, so a copied moment stands for its whole millisecond.
        return moment.nanoseconds % 1_000_000 == 0
            ? moment.advanced(by: .nanoseconds(999_999)) : moment
    }

    func run() async throws {
        if let copy {
            let report = try restored(copy, called: copy)
            tell(
                "made \(database) of \(copy): the log up to \(report.head), sound", report.json)
            return
        }
        if isServer { return try await renew() }
        try await restoreShipped()
    }

    /// Gives a database that PostgreSQL's tools restored an identity of its own.
    private func renew() async throws {
        // A URL may contain a password. Such a URL is refused, and must not be repeated.
        var name = "the database"
        do {
            let store = try NamedStore(database, schema: schema)
            name = "\(store)"
            let end = try await store.moveEnd(isTarget: false)
            let identity = Data(World.real.randomBytes(16))
            let renewed = Result { try StoreMove.renew(end, identity: identity) }
            await end.end()
            let report = try renewed.get()
            print(
                json
                    ? JSONValue.object(report.json.merging(["database": .string(name)])).text
                    : "\(name) has an identity of its own: the log up to \(report.head), sound")
        } catch let error as StorageError {
            throw CommandFailure.storage("\(name) cannot be restored", error)
        }
    }

    private func tell(_ line: String, _ members: JSONObject) {
        print(
            json
                ? JSONValue.object(members.merging(["file": .string(database)])).text : line)
    }

    private var over: RestoredOver { replace ? .movedAside : .nothing }

    private func restored(_ copy: String, called name: String) throws -> StoreReport {
        do {
            return try RelayStore.restore(from: copy, to: database, over: over)
        } catch let error as StorageError {
            throw CommandFailure.storage("\(name) cannot be restored", error)
        }
    }

    private func restoreShipped() async throws {
        let moment = try moment()
        // What would be refused at the end is refused before anything is fetched.
        if !replace, FileManager.default.fileExists(atPath: database) {
            throw CommandFailure(
                .unavailable, "\(database) exists already; --replace moves it aside")
        }
        let fetched = database + ".fetched"
        defer { Self.remove(fetched) }
        Self.remove(fetched)
        let destination = try await BackupAccess.destination(from ?? "", config: config)
        let outcome = try await BackupAccess.told(destination) {
            try RelayStore.checkRestoring(to: database, over: over)
            return try await BackupReading(destination).rebuild(at: fetched, asOf: moment)
        }
        let report = try restored(fetched, called: destination.place)
        var members = report.json
        members["moment"] = .string(outcome.mark.moment.iso8601)
        members["commits"] = .integer(outcome.mark.commits)
        members["chain"] = .string(outcome.base.chain)
        members["lostAfter"] = (outcome.next?.moment ?? outcome.later).map { .string($0.iso8601) }
        if !outcome.passedOver.isEmpty {
            members["passedOver"] = .array(outcome.passedOver.map { .string($0) })
        }
        let rest =
            outcome.next.map { next in
                "; not restored: what the backup has from \(next.moment.iso8601) on (position "
                    + "\(next.head) and more)"
            } ?? outcome.later.map { later in
                "; not restored: what the backup has from \(later.iso8601) on"
            } ?? "; the backup has nothing later"
        let older =
            outcome.passedOver.isEmpty
            ? ""
            : "; from the older copy \(outcome.base.number) and the log since then, so nothing is "
                + "lost, because \(outcome.passedOver.joined(separator: "; "))"
        tell(
            "made \(database) of \(destination.place): the log up to \(report.head), as it was at "
                + "\(outcome.mark.moment.iso8601), sound\(rest)\(older)", members)
    }

    private static func remove(_ path: String) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            try? FileManager.default.removeItem(atPath: path + ending)
        }
    }
}
