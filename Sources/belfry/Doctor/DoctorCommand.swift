import ArgumentParser
import RelayModel
import RelayServer
import Storage

/// Checks everything that fails silently, and says what to do next.
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

    @Option(
        help: """
            Where the backups are: a folder of copies, a file, or the place of continuous backups \
            (a folder, file:///FOLDER or s3://BUCKET/PREFIX).
            """,
        completion: .file())
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
        var checkup = try await options.withClient { client in
            let asked = World.real.now()
            let overview = try await client.make(.overview)
            let answered = World.real.now()
            let middle = asked.advanced(by: answered.duration(since: asked) / 2)
            return examined(overview, at: middle, file)
        }
        if let backups {
            checkup.backup = try await FoundBackups.look(at: backups, config: options.config)
        }
        let diagnosis = checkup.diagnosis
        print(
            options.json
                ? ShownText.json(diagnosis.json.text)
                : ShownText.plain(diagnosis.lines.joined(separator: "\n")))
        if diagnosis.isBad(strict: strict) { throw ExitCode.failure }
    }

    /// Creates the checkup; `file` is the relay's store according to the local configuration.
    private func examined(
        _ overview: JSONValue, at now: Timestamp, _ file: String?
    ) -> Checkup {
        var checkup = Checkup(overview: overview, now: now, isRunning: options.database == nil)
        checkup.config = options.config.map { " --config \(Checkup.quoted($0))" } ?? ""
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
            // A relay that is named by its URL may run on another machine, where its store is.
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
}
