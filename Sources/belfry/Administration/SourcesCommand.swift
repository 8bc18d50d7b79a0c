import ArgumentParser
import RelayModel
import RelayServer

/// Change sources: the databases that post webhooks.
struct SourcesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sources", abstract: "Lists, shows, sets and deletes change sources.",
        subcommands: [List.self, Show.self, Set.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists the change sources.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions

        func run() async throws {
            try await options.make(.listSources, container.parts)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Shows one change source.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The source's name.") var name: String

        func run() async throws {
            try await options.make(.showSource, container.parts(["source": name]))
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Saves a change source, new or not.",
            discussion: """
                Give a preset, or a whole definition as JSON (docs/change-sources.md). Where no \
                secret is given, one is made and shown once.
                """,
            aliases: ["create"])
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The source's name, as it stands in the webhook's URL.") var name: String

        @Option(help: "belfry, debezium, supabase, hasura and so on.")
        var preset: String?

        @Option(help: "The verification scheme (default: standardWebhooks).")
        var scheme: String?

        @Option(help: "The header of the scheme \"header\".")
        var header: String?

        @Option(help: "The file with the definition as JSON; - reads it from the standard input.")
        var definitionFile: String?

        func run() async throws {
            let body = try definition()
            try await options.run { client in
                let answer = try await client.make(
                    .setSource, container.parts(["source": name]), body: body)
                return CommandOutput(answer, to: .setSource, remark: Self.remark(answer))
            }
        }

        private func definition() throws -> JSONValue {
            if let definitionFile {
                guard preset == nil, scheme == nil, header == nil else {
                    throw ValidationError("--definition-file says everything by itself")
                }
                do {
                    return try JSONValue(parsing: try InputFile(definitionFile).text())
                } catch let error as JSONSyntaxError {
                    throw ValidationError("\(definitionFile): \(error.description)")
                }
            }
            guard let preset else {
                throw ValidationError("one of --preset and --definition-file is required")
            }
            var definition: JSONObject = ["preset": .string(preset)]
            if let scheme {
                var verification: JSONObject = ["scheme": .string(scheme)]
                verification["header"] = header.map { .string($0) }
                definition["verification"] = .object(verification)
            }
            return .object(definition)
        }

        private static func remark(_ answer: JSONValue) -> String? {
            guard case .object(let object) = answer, object["secret"] != nil else { return nil }
            return "The secret is not shown again."
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Deletes a change source.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The source's name.") var name: String

        func run() async throws {
            try await options.make(.deleteSource, container.parts(["source": name]))
        }
    }
}
