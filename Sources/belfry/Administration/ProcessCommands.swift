import ArgumentParser
import RelayModel
import RelayServer

/// The log level of a running relay.
struct LogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "Show and change what a running relay logs.",
        subcommands: [Show.self, Level.self])

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the log level in force, and until when.")
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.showLogging)
        }
    }

    struct Level: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the log level, for some minutes or until the relay ends.",
            discussion: "Without a level, the configuration's level is in force again.")
        @OptionGroup var options: AdministrationOptions
        @Argument(help: "trace, debug, info, notice, warning, error or critical.")
        var level: String?
        @Option(help: "After this many minutes the configuration's level is in force again.")
        var minutes: Int64?

        func validate() throws {
            guard level != nil || minutes == nil else {
                throw ValidationError("--minutes needs a level")
            }
        }

        func run() async throws {
            var body: JSONObject = ["level": level.map { .string($0) } ?? .null]
            body["minutes"] = minutes.map { .integer($0) }
            try await options.make(.setLogging, body: .object(body))
        }
    }
}

/// The certificate of a running relay.
struct CertificatesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificates", abstract: "Renew the certificate of a running relay.",
        subcommands: [Renew.self])

    struct Renew: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read the certificate's files again, without a restart.",
            discussion: """
                A relay looks at the files by itself every five seconds, and at SIGHUP. If the \
                files do not fit together, it refuses them and goes on with the previous \
                certificate.
                """)
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.renewCertificates)
        }
    }
}
