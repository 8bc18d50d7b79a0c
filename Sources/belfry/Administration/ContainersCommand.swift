import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// Containers: one application's data space in one environment.
struct ContainersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "containers", abstract: "List, show, create, change and resume containers.",
        subcommands: [List.self, Show.self, Create.self, Set.self, Resume.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the containers, those of all shards where there are several.")
        @OptionGroup var options: AdministrationOptions

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(.listContainers)
                return options.json
                    ? CommandOutput(answer, to: .listContainers) : Self.output(of: answer)
            }
        }

        /// Returns the answer as a table, with a column for the shard if there are several.
        static func output(of answer: JSONValue) -> CommandOutput {
            let call = AdministrationCall.listContainers
            guard case .object(var object) = answer,
                case .array(let own)? = object["containers"],
                case .array(let others)? = object["elsewhere"]
            else { return CommandOutput(answer, to: call) }
            object["containers"] = .array(own + others)
            let columns = (call.list?.columns ?? []) + [.init("shard", "shard")]
            // Without this remark, it would look as if these containers had no settings.
            let remark =
                "Of a container in another shard, only the name is shown; for the rest, use "
                + "--shard."
            return CommandOutput(
                .object(object),
                .table(AdministrationCall.List(member: "containers", columns: columns)),
                remark: others.isEmpty ? nil : remark)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show one container.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.showContainer, container.parts)
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End the halts of a container's deliveries, which then go at once.",
            discussion: "If the cause of a halt still exists, the halt returns with the first push."
        )
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.resume, container.parts)
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a container.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @OptionGroup var settings: ContainerSettingsOptions

        func run() async throws {
            try await options.make(
                .createContainer, container.parts, body: try settings.body())
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the settings that are given, and leave the others.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var settings: ContainerSettingsOptions

        func run() async throws {
            let body = try settings.body()
            guard body != [:] else { throw ValidationError("name a setting to change") }
            try await options.make(.setContainer, container.parts, body: body)
        }
    }
}

/// The settings of a container.
struct ContainerSettingsOptions: ParsableArguments {
    @Option(help: "A bundle ID that devices may name; may be repeated, the default first.")
    var topic: [String] = []

    @Option(help: "The team of the APNs key.")
    var teamID: String?

    @Option(help: "The ID of the APNs key.")
    var keyID: String?

    @Option(help: "The file of the APNs key (.p8).", completion: .file())
    var keyFile: String?

    @Option(
        help: "The file of an APNs certificate with its key (.p12 or PEM), instead of a key.",
        completion: .file())
    var certificateFile: String?

    @Option(help: "The file with the passphrase of the certificate's key.", completion: .file())
    var passphraseFile: String?

    @Option(help: "The file with the shared secret of user tokens (HS256).", completion: .file())
    var sharedSecretFile: String?

    @Option(help: "The file with the JSON Web Key Set of user tokens.", completion: .file())
    var keySetFile: String?

    @Option(help: "The iss that user tokens must have.")
    var issuer: String?

    @Option(help: "The aud that user tokens must have.")
    var audience: String?

    @Option(help: "The claim that names the user (default: sub).")
    var userClaim: String?

    @Option(help: "How long the gateway keeps a push, in seconds.")
    var expirationSeconds: Int64?

    @Option(help: "on or off: keep notifications in their users' inboxes.")
    var inbox: Switch?

    @Option(help: "How many minutes a user's session token is valid; 0 turns sessions off.")
    var sessionMinutes: Int64?

    @Option(help: "After how many days a user's session ends, however often it is renewed.")
    var sessionDays: Int64?

    @Option(help: "How many comparisons one condition may add to every change.")
    var predicateCost: Int64?

    @Option(help: "How many the conditions of one user on one record type may add.")
    var userCost: Int64?

    @Option(help: "How many all conditions on one record type may add.")
    var recordTypeCost: Int64?

    @Option(help: "A quota as NAME=NUMBER; NAME= takes the configuration's. May be repeated.")
    var quota: [String] = []

    @Option(
        help: "Requests in a second as key=NUMBER or user=NUMBER; key= takes the configuration's.")
    var rate: [String] = []

    /// A setting that is on or off.
    enum Switch: String, ExpressibleByArgument {
        case on, off
    }

    func body() throws -> JSONValue {
        var body = JSONObject()
        body["keepsInbox"] = inbox.map { .bool($0 == .on) }
        if let sessions = try sessions() { body["sessions"] = sessions }
        if !topic.isEmpty { body["topics"] = .array(topic.map { .string($0) }) }
        if let apns = try apns() { body["apns"] = .object(apns) }
        if let userTokens = try userTokens() { body["userTokens"] = .object(userTokens) }
        body["expirationSeconds"] = expirationSeconds.map { .integer($0) }
        body["costLimits"] = costLimits()
        if !quota.isEmpty { body["quotas"] = .object(try numbers(quota, "--quota")) }
        if !rate.isEmpty { body["rates"] = .object(try numbers(rate, "--rate")) }
        return .object(body)
    }

    private func numbers(_ texts: [String], _ option: String) throws -> JSONObject {
        var object = JSONObject()
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let number = parts.count == 2 && !parts[1].isEmpty ? Int64(parts[1]) : nil
            guard parts.count == 2, number != nil || parts[1].isEmpty else {
                throw ValidationError("\(option) \(text): NAME=NUMBER or NAME= is expected")
            }
            guard object[String(parts[0])] == nil else {
                throw ValidationError("\(option) \(parts[0]) is given twice")
            }
            object.members.append((String(parts[0]), number.map { .integer($0) } ?? .null))
        }
        return object
    }

    private func costLimits() -> JSONValue? {
        guard predicateCost != nil || userCost != nil || recordTypeCost != nil else { return nil }
        var object = JSONObject()
        object["predicate"] = predicateCost.map { .integer($0) }
        object["user"] = userCost.map { .integer($0) }
        object["recordType"] = recordTypeCost.map { .integer($0) }
        return .object(object)
    }

    private func sessions() throws -> JSONValue? {
        if sessionMinutes == 0 {
            guard sessionDays == nil else {
                throw ValidationError(
                    "--session-minutes 0 turns sessions off: leave out --session-days")
            }
            return .null
        }
        guard sessionMinutes != nil || sessionDays != nil else { return nil }
        var object = JSONObject()
        object["minutes"] = sessionMinutes.map { .integer($0) }
        object["days"] = sessionDays.map { .integer($0) }
        return .object(object)
    }

    private func apns() throws -> JSONObject? {
        if let certificateFile { return try certificate(certificateFile) }
        guard passphraseFile == nil else {
            throw ValidationError("--passphrase-file needs --certificate-file")
        }
        guard teamID != nil || keyID != nil || keyFile != nil else { return nil }
        guard let teamID, let keyID, let keyFile else {
            throw ValidationError("--team-id, --key-id and --key-file belong together")
        }
        return [
            "teamID": .string(teamID), "keyID": .string(keyID),
            "privateKey": .string(try InputFile(keyFile).text()),
        ]
    }

    private func certificate(_ path: String) throws -> JSONObject {
        guard teamID == nil, keyID == nil, keyFile == nil else {
            throw ValidationError(
                "give a certificate, or --team-id, --key-id and --key-file, but not both")
        }
        let bytes = try InputFile(path).bytes()
        let text = String(decoding: bytes, as: UTF8.self)
        var object: JSONObject = [
            "certificate": .string(text.contains("-----BEGIN") ? text : Base64.encode(bytes))
        ]
        object["passphrase"] = try passphraseFile.map {
            .string(try InputFile($0).text().trimmed(\.isNewline))
        }
        return object
    }

    private func userTokens() throws -> JSONObject? {
        guard sharedSecretFile != nil || keySetFile != nil else {
            guard issuer == nil, audience == nil, userClaim == nil else {
                throw ValidationError(
                    "--issuer, --audience and --user-claim need --shared-secret-file or "
                        + "--key-set-file")
            }
            return nil
        }
        var object = JSONObject()
        object["sharedSecret"] = try sharedSecretFile.map {
            .string(try InputFile($0).text().trimmed(\.isNewline))
        }
        object["keySet"] = try keySetFile.map { .string(try InputFile($0).text()) }
        object["issuer"] = issuer.map { .string($0) }
        object["audience"] = audience.map { .string($0) }
        object["userClaim"] = userClaim.map { .string($0) }
        return object
    }
}
