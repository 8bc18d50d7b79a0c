import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite

/// Tokens of the administrative surface, in addition to the one in the configuration.
struct TokensCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens",
        abstract: "List, create and revoke further tokens of the administrative surface.",
        subcommands: [List.self, Create.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the tokens, including revoked ones.")
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.listTokens)
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a token.",
            discussion: """
                A token may read, or read and change, everything or one container. It cannot \
                create tokens; a token for one container cannot set that container's bounds either.
                """)
        @OptionGroup var options: AdministrationOptions
        @Option(help: "The name that it has in the audit log.") var label: String
        @Option(help: "What it may do: read or change.") var access = "read"
        @Option(name: .shortAndLong, help: "The container that it is for (default: all).")
        var container: String?
        @Option(
            name: .shortAndLong, help: "Its environment (default: development).",
            completion: .list(["development", "production"]))
        var environment: String?
        @Option(help: "After how many hours it expires (default: never).")
        var hours: Int64?

        func validate() throws {
            guard container != nil || environment == nil else {
                throw ValidationError(
                    "--environment needs --container: without one, a token is for all containers")
            }
        }

        func run() async throws {
            var body: JSONObject = ["label": .string(label), "access": .string(access)]
            body["container"] = container.map { .string($0) }
            if container != nil { body["environment"] = .string(environment ?? "development") }
            body["hours"] = hours.map { .integer($0) }
            let sent = JSONValue.object(body)
            try await options.run { client in
                CommandOutput(
                    try await client.make(.createToken, body: sent), to: .createToken,
                    remark: "The secret is not shown again.")
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a token at once.")
        @OptionGroup var options: AdministrationOptions
        @Argument(help: "The token's ID.") var id: String

        func run() async throws {
            try await options.make(.revokeToken, ["token": id])
        }
    }
}

/// The audit log of the administrative surface.
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "List administrative calls that changed something or were refused.")
    @OptionGroup var options: AdministrationOptions
    @Option(help: "Only those before this number.") var before: Int64?
    @OptionGroup var bound: LimitOptions

    func run() async throws {
        try await options.list(
            .audit, query: [("before", before.map(String.init))] + bound.query)
    }
}

/// The encryption of the secrets in the store.
struct SecretsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets", abstract: "Show and replace the key of the secrets in the store.",
        subcommands: [Key.self, Status.self, Rotate.self])

    struct Key: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a key and print it, for a file that only the relay may read.")

        func run() async throws {
            guard let key = SecretKey(bytes: World.real.randomBytes(32)) else {
                throw ExitCode.failure
            }
            print(key.text)
        }
    }

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show whether the secrets are encrypted, and the ID of the key.")
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.secrets)
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Encrypt the secrets of a file with a new key, while no relay has it open.",
            discussion: """
                The previous key is that of the configuration (secrets.keyFile or secrets.key), if \
                there is one. A relay takes the same step at its start, where secrets.keyFile \
                names the new key and secrets.previousKeyFile the previous one.
                """)
        @Option(help: "The relay's file.", completion: .file()) var database: String
        @Option(help: "The file with the new key.", completion: .file()) var newKeyFile: String
        @Option(help: "The configuration file.", completion: .file()) var config: String?

        /// Refuses a URL, which may contain a password, before it is taken for a file name and
        /// repeated.
        func validate() throws {
            try NamedStore.requireName(database)
            guard NamedStore.isServer(database) else { return }
            throw ValidationError(
                "this command is only for files; for a store on PostgreSQL, start a relay with the "
                    + "new key in secrets.keyFile and the previous one in secrets.previousKeyFile")
        }

        func run() async throws {
            do {
                var settings = try await configuration().store
                settings.creation = .never
                guard let key = SecretKey(text: try InputFile(newKeyFile).text()) else {
                    throw ConfigurationError(["--new-key-file: the key must be \(SecretKey.rule)"])
                }
                let before = [settings.secrets.current].compactMap(\.self)
                settings.secrets = SecretVault(
                    current: key, previous: before + settings.secrets.previous)
                let store = try RelayStore.open(path: database, settings: settings)
                await store.close()
                print("the secrets in \(database) are encrypted with the key \(key.id)")
            } catch let error as StorageError {
                throw CommandFailure.storage("\(database) cannot be used", error)
            } catch let error as ConfigurationError {
                try? StandardStreams.write(Array("error: \(error)\n".utf8), .error)
                throw ExitCode(CommandFailure.Kind.configuration.rawValue)
            }
        }

        private func configuration() async throws -> RelayConfiguration {
            try RelayConfiguration(
                try await ConfigurationValues.gather(
                    arguments: config.map { ["--config", $0] } ?? [],
                    environment: ProcessInfo.processInfo.environment))
        }
    }
}
