import ArgumentParser
import RelayModel

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
            try await options.list(
                "sources", at: container.path + "/sources",
                [
                    .init("name", "name"), .init("preset", "preset"),
                    .init("verification", "verification.scheme"),
                    .init("unmappable", "onUnmappable"), .init("post to", "url"),
                ])
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Shows one change source.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The source's name.") var name: String

        func run() async throws {
            let path = container.path + "/sources/" + ContainerOptions.escaped(name)
            try await options.call("GET", path)
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
            let path = container.path + "/sources/" + ContainerOptions.escaped(name)
            let body = try definition()
            try await options.run { client in
                let answer = try await client.call("PUT", path, body: body)
                return CommandOutput(answer, .members, remark: Self.remark(answer))
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
            let path = container.path + "/sources/" + ContainerOptions.escaped(name)
            try await options.call("DELETE", path)
        }
    }
}
