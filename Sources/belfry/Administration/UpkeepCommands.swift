import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Copies a relay's file, even while the relay runs.
struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy a relay's file, even while the relay runs, and check the copy.",
        discussion: """
            The copy is complete and shows the store at one moment; belfry restore makes a store \
            from it. It contains the same secrets as the file, and only its owner may read it.
            """)

    @Argument(help: "The file to write; it must not exist.", completion: .file()) var file: String
    @Option(help: "The relay's file.", completion: .file()) var database = StoreSettings.usualPath
    @Flag(help: "Show JSON.") var json = false

    func validate() throws {
        try NamedStore.requireFile(database, "backed up")
        try NamedStore.requireName(file)
    }

    func run() async throws {
        let database = DevAddress.store(for: database, ProcessInfo.processInfo.environment)
        do {
            let report = try RelayStore.backUp(path: database, to: file)
            let size = FileManager.default.bytes(at: file) ?? 0
            print(
                json
                    ? JSONValue.object(
                        report.json.merging(["file": .string(file), "bytes": .integer(Int64(size))])
                    ).text
                    : "wrote \(file): \(size) bytes, the log up to \(report.head), sound")
        } catch let error as StorageError {
            throw CommandFailure.storage("\(database) cannot be backed up", error)
        }
    }
}

/// Checks a relay's store, even while the relay runs.
struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a relay's store: its pages, its references, and that nothing is lost.",
        discussion: """
            For every container, the deliveries that were owed must equal those that are \
            delivered, pending, dead or dropped, that were told with others, or that were seen \
            over a connection. The command exits with 1 if anything is wrong. A relay may be \
            running.
            """)

    @OptionGroup var file: StoreFileOptions
    @Flag(help: "Show JSON.") var json = false

    func run() async throws {
        let database = try await file.store()
        do {
            let report = try database.check()
            print(json ? JSONValue.object(report.json).text : report.lines.joined(separator: "\n"))
            guard report.problems.isEmpty else { throw ExitCode.failure }
        } catch let error as StorageError {
            throw CommandFailure.storage("\(database) cannot be checked", error)
        }
    }
}

/// The store to work on; by default, the one that `serve` would open.
struct StoreFileOptions: ParsableArguments {
    @Option(
        help: """
            The relay's file, or the URL of its database (default: storage.url or storage.path of \
            the configuration).
            """, completion: .file())
    var database: String?

    @Option(help: "The schema of the database (default: storage.schema of the configuration).")
    var schema: String?

    @Option(help: "The configuration file.", completion: .file())
    var config: String?

    func validate() throws {
        if let database { try NamedStore.check(schema, of: database, called: "--schema") }
    }

    /// Returns the store; ends the process if the configuration is unusable or names none.
    func store() async throws -> NamedStore {
        try await told {
            if let database { return try NamedStore(database, schema: schema) }
            let named = try await values().store()
            guard let url = named.url else {
                try NamedStore.check(schema, of: named.path, called: "--schema")
                return .file(
                    DevAddress.store(for: named.path, ProcessInfo.processInfo.environment))
            }
            return .server(try PostgresPlace(url: url, schema: schema ?? named.schema))
        }
    }

    /// Returns the schemas of all shards of the service.
    ///
    /// They are empty if the store is the only shard, or if it was given by an option instead of a
    /// setting.
    func schemas() async throws -> [String] {
        guard database == nil, schema == nil else { return [] }
        return try await told { try await values().schemas }
    }

    private func values() async throws -> ConfigurationValues {
        try await ConfigurationValues.gather(
            arguments: config.map { ["--config", $0] } ?? [],
            environment: ProcessInfo.processInfo.environment)
    }

    private func told<Outcome>(_ body: () async throws -> Outcome) async throws -> Outcome {
        do {
            return try await body()
        } catch let error as ConfigurationError {
            try? StandardStreams.write(Array("error: \(error)\n".utf8), .error)
            throw ExitCode(CommandFailure.Kind.configuration.rawValue)
        } catch let error as StorageError {
            try? StandardStreams.write(Array("error: \(error)\n".utf8), .error)
            throw ExitCode(CommandFailure.Kind.configuration.rawValue)
        }
    }
}

extension CommandFailure {
    /// Reports what the store refused; returns the exit code with which to end the process.
    static func storage(_ sentence: String, _ error: StorageError) -> ExitCode {
        var reason = "\(error)"
        // The sentence names the place, and what cannot be done there.
        if case .inaccessible(let path, let why) = error, sentence.hasPrefix("\(path) ") {
            reason = why
        }
        try? StandardStreams.write(Array("error: \(sentence): \(reason)\n".utf8), .error)
        return ExitCode(Kind.unavailable.rawValue)
    }
}

extension StoreReport {
    var json: JSONObject {
        [
            "sound": .bool(problems.isEmpty),
            "problems": .array(problems.map { .string($0) }),
            "schemaVersion": .integer(Int64(schemaVersion)),
            "head": .string(head.description), "progress": .string(progress.description),
            "accounts": .array(accounts.map { .object($0.json) }),
        ]
    }

    var lines: [String] {
        let places = "schema \(schemaVersion), log up to \(head), settled up to \(progress)"
        let accounts = accounts.map { account in
            "\(account.container): owed \(account.owed) = delivered \(account.delivered)"
                + " + pending \(account.pending) + dead \(account.deadLetters)"
                + (account.folded == 0 ? "" : " + told with others \(account.folded)")
                + (account.seen == 0 ? "" : " + seen \(account.seen)")
                + " + dropped \(account.dropped)"
                + (account.waitingInRanges == 0
                    ? "" : ", and what \(account.waitingInRanges) subscriptions in ranges owe")
                + (account.difference == 0 ? "" : ", DIFFERENCE \(account.difference)")
        }
        return [places] + accounts + problems.map { "PROBLEM: \($0)" }
            + [problems.isEmpty ? "sound" : "not sound"]
    }
}

extension DeliveryAccount {
    var json: JSONObject {
        [
            "container": .string(container.container.rawValue),
            "environment": .string(container.environment.rawValue),
            "owed": .integer(Int64(owed)), "delivered": .integer(Int64(delivered)),
            "pending": .integer(Int64(pending)), "deadLetters": .integer(Int64(deadLetters)),
            "dropped": .integer(Int64(dropped)),
            "waitingInRanges": .integer(Int64(waitingInRanges)),
            "difference": .integer(Int64(difference)),
        ]
    }
}
