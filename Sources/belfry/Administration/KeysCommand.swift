import ArgumentParser
import RelayModel
import RelayServer

/// Access keys: API tokens of clients, server-to-server keys, bearer keys of servers.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "List, create and revoke access keys.",
        subcommands: [List.self, Create.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys, including revoked ones.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.listKeys, container.parts)
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a key.",
            discussion: """
                apiToken: what clients send as ckAPIToken, together with a user token.
                serverToServer: the public half of a key pair with which a server signs as \
                CloudKit's servers do.
                bearer: what the application's own servers send as Authorization: Bearer.
                """)
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        @Option(help: "apiToken, serverToServer or bearer.")
        var kind: String

        @Option(help: "A name for it, for people.")
        var label: String?

        @Option(
            help: "The file with the public key in PEM form, for serverToServer.",
            completion: .file())
        var publicKeyFile: String?

        @Option(help: "The key ID, for serverToServer (default: made of the key).")
        var id: String?

        func validate() throws {
            if kind == "serverToServer", publicKeyFile == nil {
                throw ValidationError(
                    "--kind serverToServer needs the public key: --public-key-file")
            }
        }

        func run() async throws {
            var body: JSONObject = ["kind": .string(kind)]
            body["label"] = label.map { .string($0) }
            body["publicKey"] = try publicKeyFile.map { .string(try InputFile($0).text()) }
            body["id"] = id.map { .string($0) }
            let sent = JSONValue.object(body)
            try await options.run { client in
                CommandOutput(
                    try await client.make(.createKey, container.parts, body: sent),
                    to: .createKey,
                    remark: kind == "serverToServer" ? nil : "The secret is not shown again.")
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a key at once.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The key's ID.") var id: String

        func run() async throws {
            try await options.make(.revokeKey, container.parts(["key": id]))
        }
    }
}
