import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer
import Storage

/// Looks at everything that goes wrong quietly, and says what to do next.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract:
            "Look for what goes wrong quietly: one verdict, and the next step for each check.",
        discussion: """
            The command looks at the push gateway's last answers, credentials, the clock, the \
            disk, backups, sources that are silent or refused, and what waits. It changes nothing, \
            and a token that may only read is enough. It exits with 0; with 1 if a check fails, or \
            with --strict if one warns; with 69 if no relay answers.
            """)
    @OptionGroup var options: AdministrationOptions

    @Option(help: "The folder or file of backups, of which the newest is looked at.")
    var backups: String?

    @Option(help: "How many hours old the newest backup may be.")
    var backupHours = Int(Checkup.Bounds().backupAge.components.seconds / 3600)

    @Option(help: "For how many hours a source may post nothing.")
    var silentHours = Int(Checkup.Bounds().silence.components.seconds / 3600)

    @Option(help: "For how many more days a certificate should be valid.")
    var certificateDays = Int(Checkup.Bounds().validity.components.seconds / 86_400)

    @Flag(help: "End with 1 for warnings too.")
    var strict = false

    func validate() throws {
        let numbers = [
            ("--backup-hours", backupHours), ("--silent-hours", silentHours),
            ("--certificate-days", certificateDays),
        ]
        for (name, number) in numbers where !(0...100_000).contains(number) {
            throw ValidationError("\(name) must be from 0 to 100000")
        }
    }

    func run() async throws {
        let file = try await options.configuredFile()
        let checkup = try await options.withClient { client in
            let asked = World.real.now()
            let overview = try await client.make(.overview)
            let answered = World.real.now()
            let middle = asked.advanced(by: answered.duration(since: asked) / 2)
            return try examined(overview, at: middle, file)
        }
        let diagnosis = checkup.diagnosis
        print(
            options.json
                ? ShownText.json(diagnosis.json.text)
                : ShownText.plain(diagnosis.lines.joined(separator: "\n")))
        if diagnosis.isBad(strict: strict) { throw ExitCode.failure }
    }

    /// The judgement; `file` is the relay's store as far as the configuration here says.
    private func examined(
        _ overview: JSONValue, at now: Timestamp, _ file: String?
    ) throws -> Checkup {
        var checkup = Checkup(overview: overview, now: now, isRunning: options.database == nil)
        checkup.backup = try backups.map(Self.newestBackup) ?? .notNamed
        checkup.bounds.backupAge = .seconds(backupHours * 3600)
        checkup.bounds.silence = .seconds(silentHours * 3600)
        checkup.bounds.validity = .seconds(certificateDays * 86_400)
        let places = [
            ("--url", options.url), ("--database", options.database), ("--config", options.config),
            ("--ca-file", options.caFile),
        ]
        for case (let name, let value?) in places {
            checkup.place += " \(name) \(Checkup.quoted(value))"
        }
        if options.url != nil {
            // A relay that is named so may be another machine's, whose store is found there.
            checkup.isElsewhere = true
        } else {
            let stores = [
                ("--database", options.database),
                ("--schema", options.database == nil ? nil : options.shard),
                ("--config", options.config),
            ]
            for case (let name, let value?) in stores {
                checkup.store += " \(name) \(Checkup.quoted(value))"
            }
        }
        if let database = options.database ?? file { checkup.database = database }
        if NamedStore.isServer(checkup.database) { checkup.isOnServer = true }
        return checkup
    }

    /// What lies beside a store, or is left of a backup that was cut off.
    private static let noBackups = ["-wal", "-shm", "-journal", ".partial"]

    /// The newest file at the place that can be a backup: an empty one is what a full disk leaves.
    static func newestBackup(at backups: String) throws -> Checkup.Backup {
        let manager = FileManager.default
        guard let kind = try? manager.attributesOfItem(atPath: backups)[.type] as? FileAttributeType
        else { return .missing(path: backups) }
        let isFolder = kind == .typeDirectory
        let names = try isFolder ? contents(of: backups) : []
        let paths = isFolder ? names.map { "\(backups)/\($0)" } : [backups]
        let files = paths.compactMap { path -> (Date, String)? in
            guard !noBackups.contains(where: { path.hasSuffix($0) }),
                let attributes = try? manager.attributesOfItem(atPath: path),
                attributes[.type] as? FileAttributeType == .typeRegular,
                manager.bytes(at: path) ?? 0 > 0,
                let date = attributes[.modificationDate] as? Date
            else { return nil }
            return (date, path)
        }
        guard let (date, path) = files.max(by: { $0.0 < $1.0 }) else {
            return .missing(path: backups)
        }
        return .made(moment(date), path: path)
    }

    /// The whole second of a date: of one beyond what 64 bits hold, as some file systems keep, the
    /// first or last moment.
    static func moment(_ date: Date) -> Timestamp {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        return Int64(exactly: seconds).map { Timestamp(seconds: $0) }
            ?? (seconds < 0 ? .earliest : .latest)
    }

    private static func contents(of folder: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw CommandFailure(
                .input,
                "--backups: the folder \(folder) cannot be read: \(error.systemReason)")
        }
    }
}
