import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// The schema: record types, their fields, and whether their records are kept.
struct SchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Show, export and import the record types of a container.",
        subcommands: [Show.self, Export.self, Import.self, Keep.self])

    /// The format of a schema.
    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the record types.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(.showSchema, container.parts)
                return CommandOutput(
                    options.json ? answer : Self.summary(answer), to: .showSchema)
            }
        }

        /// Returns the answer with the names of fields instead of their descriptions.
        private static func summary(_ answer: JSONValue) -> JSONValue {
            guard case .object(var object) = answer,
                case .array(let types)? = object["recordTypes"]
            else { return answer }
            object["recordTypes"] = .array(
                types.map { type in
                    guard case .object(var type) = type, case .array(let fields)? = type["fields"]
                    else { return type }
                    type["fields"] = .array(
                        fields.map { field in
                            if case .object(let field) = field {
                                field["name"] ?? .null
                            } else {
                                field
                            }
                        })
                    return .object(type)
                })
            return .object(object)
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write the schema, by default as CloudKit's schema text.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "The form: text (DEFINE SCHEMA …) or json.") var format: Format = .text

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(
                    .showSchema, container.parts, query: [("format", format.rawValue)])
                guard format == .text, case .object(let object) = answer,
                    case .string(let text)? = object["text"]
                else { return CommandOutput(answer, .json) }
                return CommandOutput(answer, .text(text))
            }
        }
    }

    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the schema with another one.",
            discussion: """
                The file is CloudKit's schema text (DEFINE SCHEMA …) or the JSON that export \
                writes; a file that begins with a brace is JSON. The relay forgets the records of \
                types that the new schema does not keep.
                """)
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The file; - reads the standard input.", completion: .file())
        var file: String

        func run() async throws {
            let text = try InputFile(file).text()
            let first = text.first { !$0.isWhitespace }
            var body: JSONValue = ["text": .string(text)]
            if first == "{" { body = try JSONValue(typed: text, as: file) }
            try await options.make(.replaceSchema, container.parts, body: body)
        }
    }

    struct Keep: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Keep the last version of each record of a type in the shadow, or stop keeping it.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The record type.") var recordType: String
        @Flag(help: "Stop keeping, and forget what was kept.") var forget = false

        func run() async throws {
            try await options.make(
                .keepRecords, container.parts(["recordType": recordType]),
                body: ["shadow": .bool(!forget)])
        }
    }
}
