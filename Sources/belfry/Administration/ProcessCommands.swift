import ArgumentParser
import RelayModel
import RelayServer

/// What a running relay logs.
struct LogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "Shows and changes what a running relay logs.",
        subcommands: [Show.self, Level.self])

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the level in force, and until when.")
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.showLogging)
        }
    }

    struct Level: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sets the level, for some minutes or until the relay ends.",
            discussion: "Without a level, what the configuration says holds again.")
        @OptionGroup var options: AdministrationOptions
        @Argument(help: "trace, debug, info, notice, warning, error or critical.")
        var level: String?
        @Option(help: "After so many minutes the configuration holds again.") var minutes: Int64?

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
        commandName: "certificates", abstract: "Renews the certificate of a running relay.",
        subcommands: [Renew.self])

    struct Renew: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reads the files of the certificate again, without a restart.",
            discussion: """
                A relay looks by itself every five seconds, and at SIGHUP. Files that do not fit \
                together are refused, and the certificate before goes on.
                """)
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.make(.renewCertificates)
        }
    }
}
