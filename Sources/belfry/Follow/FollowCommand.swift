import ArgumentParser
import AsyncHTTPClient
import ChangeSources
import FoundationEssentials
import Logging
import PostgresFollowing
import PostgresLink
import RelayModel
import RelayServer
import ServiceLifecycle
import UnixSignals

/// Follows a database by its own log.
struct FollowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "follow", abstract: "Follow a database, and post its changes to a relay.",
        subcommands: [FollowPostgresCommand.self])
}

/// Follows PostgreSQL by logical replication.
struct FollowPostgresCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postgres",
        abstract: "Follow a PostgreSQL database by logical replication.",
        discussion: """
            The command posts every committed transaction to a change source with the preset \
            "postgres", and tells the server so only when the relay has it. A password comes from \
            the file that PGPASSFILE names, or from PGPASSWORD. A relay can do the same by itself: \
            belfry sources set --follow. Details are in docs/postgresql.md.

              belfry follow postgres --url postgresql://belfry@db/shop --make \
            --tables public.orders --source-url https://relay/changes/1/… --secret-file secret
            """)

    @Option(help: "The database, as postgresql://ROLE@HOST:PORT/DATABASE; without a password.")
    var url: String?
    @Option(help: "The publication, which says what is followed.")
    var publication = "belfry"
    @Option(help: "The replication slot, which remembers how far it was followed.")
    var slot = "belfry"
    @Flag(
        help: """
            Read an outbox, which triggers fill, instead of a slot: for servers that do not let \
            the role replicate.
            """)
    var outbox = false
    @Flag(help: "Make the publication and the slot, or the outbox, where they are missing.")
    var make = false
    @Flag(help: "Remove the outbox, with what was not posted from it, and end.")
    var drop = false
    @Option(
        help: """
            A table of the publication or outbox that is made, such as public.orders; may be \
            repeated. Without it, a publication has all tables.
            """)
    var tables: [String] = []
    @Flag(help: "When a slot or outbox is made, leave out the rows that are there already.")
    var withoutSnapshot = false
    @Option(
        help: """
            The URL of the change source, as belfry sources show prints it (default: \
            BELFRY_SOURCE_URL, or belfry dev).
            """)
    var sourceUrl: String?
    @Option(
        help: "The file with the source's secret (default: BELFRY_SOURCE_SECRET).",
        completion: .file())
    var secretFile: String?
    @Option(
        help: "The certificate authorities of the relay's certificate, in PEM form.",
        completion: .file())
    var caFile: String?
    @Option(
        help: "Warn as soon as this much is kept, in megabytes: log for the slot, or the outbox.")
    var warnMegabytes: UInt64 = 1024
    @Option(help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"
    @Flag(help: "Show the SQL that prepares a database, and run nothing.")
    var printSql = false

    /// The interval between log lines about the progress.
    private static let pause = Duration.seconds(60)

    func validate() throws {
        guard FollowDefinition.isSlotName(slot) else {
            throw ValidationError("--slot must be 1 to 63 of a–z, 0–9 and _")
        }
        guard (1...63).contains(publication.utf8.count) else {
            throw ValidationError("--publication must have 1 to 63 bytes")
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--log-level must be one of \(levels)")
        }
        guard !drop || outbox else { throw ValidationError("--drop needs --outbox") }
        guard !outbox || drop || !(make || printSql) || !tables.isEmpty else {
            throw ValidationError(
                "--outbox needs --tables: an outbox is made for the tables that you name")
        }
        guard printSql || url != nil else { throw ValidationError("--url is required") }
        guard warnMegabytes < 1 << 40 else {
            throw ValidationError("--warn-megabytes must be from 0 to \((1 << 40) - 1)")
        }
    }

    func run() async throws {
        if printSql {
            print(shownSQL)
            return
        }
        guard !drop else { return try await remove() }
        try await CommandFailure.told {
            let source = try await postedSource()
            var trust = RelayTrust()
            if let caFile { try trust.add("--ca-file", caFile) }
            var configuration = trust.configurations[0]
            // Without a read timeout, an answer that stalls after its head would be waited for
            // forever.
            configuration.timeout.read = FollowPosting.patience
            let client = HTTPClient(
                eventLoopGroupProvider: .singleton, configuration: configuration)
            let result: Result<Void, any Error>
            do {
                result = .success(
                    try await follow(FollowPosting(source: source, client: client)))
            } catch {
                result = .failure(error)
            }
            try? await client.shutdown()
            try result.get()
        }
    }

    /// Returns the source to post to: the given one, or else one of a running `belfry dev`.
    private func postedSource() async throws -> PostedSource {
        let environment = ProcessInfo.processInfo.environment
        let isNamed =
            sourceUrl != nil || secretFile != nil || environment["BELFRY_SOURCE_URL"] != nil
            || environment["BELFRY_SOURCE_SECRET"] != nil
        if !isNamed, let dev = DevAddress.find(environment),
            let source = try await SandboxSource.made(in: dev)
        {
            let line = "(belfry dev at \(dev.url), by its source \(SandboxSource.name))\n"
            try? StandardStreams.write(Array(line.utf8), .error)
            return source
        }
        return try PostedSource.found(
            url: sourceUrl, secret: try secretFile.map { try InputFile($0).secret() },
            flags: (url: "--source-url", secret: "--secret-file"), environment)
    }

    private var shownSQL: String {
        guard outbox else {
            return PreparingSQL(publication: publication, slot: slot, tables: tables).text
        }
        return drop ? OutboxSQL.dropText : OutboxSQL(tables: tables, role: "belfry").text
    }

    private func remove() async throws {
        try await CommandFailure.told {
            do {
                let clock = ContinuousClock()
                let start = clock.now
                try OutboxRemoval.run(try settings()) { start.duration(to: clock.now) }
            } catch let problem as FollowProblem {
                throw CommandFailure(.configuration, problem.advice)
            }
        }
    }

    private func settings() throws(FollowProblem) -> FollowSettings {
        var settings = FollowSettings(try PostgresTarget.followed(url ?? ""))
        settings.way = outbox ? .outbox : .slot
        settings.publication = publication
        settings.slot = slot
        settings.makes = make
        settings.tables = tables
        settings.takesSnapshot = !withoutSnapshot
        settings.endsBeforeItBegan = true
        settings.retainedWarning = warnMegabytes * 1_048_576
        settings.authorities = FollowSettings.usualAuthorities
        return settings
    }

    private func follow(_ posting: FollowPosting) async throws {
        var logger = Logger(label: "belfry.follow")
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        let log = FollowLog(logger)
        do {
            let follower = try PostgresFollower(
                try settings(), clock: World.real.clock, now: World.real.now, changed: log.note,
                end: { end in await posting.post(end) }
            ) { rows in posting.prepare(rows) }
            let services: [any Service] = [
                LoopService { try await follower.run() },
                LoopService {
                    while true {
                        try await World.real.clock.sleep(for: Self.pause)
                        log.noteProgress(follower.status)
                    }
                },
            ]
            try await ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: services.map {
                        .init(
                            service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                            failureTerminationBehavior: .cancelGroup)
                    }, gracefulShutdownSignals: [.sigterm, .sigint],
                    logger: Logger(
                        label: "belfry.signals", factory: { _ in SwiftLogNoOpLogHandler() }))
            ).run()
            log.noteProgress(follower.status)
        } catch let problem as FollowProblem {
            throw CommandFailure(.configuration, problem.advice)
        }
    }
}
