import ArgumentParser
import ChangeSources
import RelayModel
import RelayServer

/// Change sources, which post webhooks.
struct SourcesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sources", abstract: "List, show, set, rotate and delete change sources.",
        subcommands: [
            List.self, Show.self, Set.self, Rotate.self, Refused.self, Delete.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the change sources.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.listSources, container.parts)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one change source, with what its sender needs and a webhook to try.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The source's name.") var name: String

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(
                    .showSource, container.parts(["source": name]))
                return SourceOutput.of(answer)
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create or change a change source.",
            discussion: """
                Give a preset, or a definition as JSON (docs/change-sources.md). Whatever you do \
                not name stays as it was. The relay verifies a new source in the way that its \
                preset's sender uses; if you give no secret, it makes one and shows it once.
                """,
            aliases: ["create"])
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The source's name, as in the webhook's URL.") var name: String

        @Option(
            help: "The preset: belfry, debezium, supabase, hasura and so on.",
            completion: .list(SourcePreset.allCases.map(\.rawValue)))
        var preset: String?

        @Option(help: "The verification scheme (default: the preset's own).")
        var scheme: String?

        @Option(help: "The header of the scheme \"header\" or \"stripe\".")
        var header: String?

        @Option(help: "The file with the secret, if the sender made it.", completion: .file())
        var secretFile: String?

        @Option(help: "The table, where bodies name none (minapp).")
        var table: String?

        @OptionGroup(title: "A database that the relay follows by itself")
        var follow: FollowOptions

        @Option(
            help: "The file with the definition as JSON; - reads it from the standard input.",
            completion: .file())
        var definitionFile: String?

        func run() async throws {
            let body = try definition()
            try await options.run { client in
                SourceOutput.of(
                    try await client.make(
                        .setSource, container.parts(["source": name]), body: body))
            }
        }

        private func definition() throws -> JSONValue {
            if let definitionFile {
                guard preset == nil, scheme == nil, header == nil, secretFile == nil, table == nil,
                    !follow.isGiven
                else {
                    throw ValidationError(
                        "--definition-file has the whole definition: leave out the other options")
                }
                return try JSONValue(
                    typed: try InputFile(definitionFile).text(), as: definitionFile)
            }
            var definition: JSONObject = [:]
            definition["preset"] = (preset ?? follow.preset).map { .string($0) }
            definition["follow"] = follow.definition
            var verification: JSONObject = [:]
            verification["scheme"] = scheme.map { .string($0) }
            verification["header"] = header.map { .string($0) }
            if let secretFile {
                verification["secrets"] = [["secret": .string(try InputFile(secretFile).secret())]]
            }
            if !verification.members.isEmpty { definition["verification"] = .object(verification) }
            if let table { definition["mapping"] = ["table": ["constant": .string(table)]] }
            guard !definition.members.isEmpty else {
                throw ValidationError("one of --preset, --follow and --definition-file is required")
            }
            return .object(definition)
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a source a new secret; the previous one is accepted for a while.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The source's name.") var name: String

        @Option(help: "How many hours the previous secret is accepted too; 0 ends it at once.")
        var graceHours: Int64 = 24

        @Option(
            help: "The file with the new secret, if the sender made it.", completion: .file())
        var secretFile: String?

        func run() async throws {
            guard (0...720).contains(graceHours) else {
                throw ValidationError("--grace-hours must be from 0 to 720")
            }
            var body: JSONObject = ["graceSeconds": .integer(graceHours * 3600)]
            body["secret"] = try secretFile.map { .string(try InputFile($0).secret()) }
            let sent = JSONValue.object(body)
            try await options.run { client in
                SourceOutput.of(
                    try await client.make(
                        .rotateSource, container.parts(["source": name]), body: sent))
            }
        }
    }

    struct Refused: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the last webhooks that were refused, with the reason.",
            discussion: "The list has those since the relay was started, at most a hundred.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.listRefusals, container.parts)
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a change source.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The source's name.") var name: String

        func run() async throws {
            try await options.make(.deleteSource, container.parts(["source": name]))
        }
    }
}
