import ArgumentParser
import RelayModel

/// Subscriptions, for whoever has to help a user.
struct SubscriptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "Lists and deletes subscriptions, and shows their index.",
        subcommands: [List.self, Delete.self, Index.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the subscriptions; of those that were disabled, why.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @Option(help: "Those after this serial.") var after: UInt64?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([
                ("user", user), ("after", after.map(String.init)), ("limit", String(limit)),
            ])
            try await options.list(
                "subscriptions", at: container.path + "/subscriptions" + query,
                [
                    .init("serial", "serial"), .init("database", "database"),
                    .init("user", "userRecordName"), .init("ID", "subscriptionID"),
                    .init("type", "subscriptionType"),
                    .init("record type", "query.recordType"),
                    .init("fires on", "firesOn"),
                    .init("predicate", "query.canonicalPredicate"),
                    .init("disabled", "disabled.reason"),
                ])
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Deletes a subscription.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "The user whose it is.") var user: String
        @Option(help: "public, private or shared.") var scope = "public"
        @Argument(help: "The subscription's ID.") var id: String

        func run() async throws {
            let parts = [scope, user, id].map(ContainerOptions.escaped)
            let path = container.path + "/subscriptions/" + parts.joined(separator: "/")
            try await options.call("DELETE", path)
        }
    }
}

extension SubscriptionsCommand {
    struct Index: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what the index of the subscriptions holds, and what matching cost.",
            discussion: """
                The figures are those of the running relay: subscriptions, keys, postings by what \
                has to be verified, residuals (looked at for every change of their record type), \
                bytes; since the start changes, matches, candidates and those confirmed, and \
                evaluation errors; and the keys by field. With --database there is no running \
                relay, and so no index.
                """)
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions

        func run() async throws {
            try await options.call("GET", container.path + "/index")
        }
    }
}

/// Devices and their tokens.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists and forgets devices.",
        subcommands: [List.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the devices; of tokens, the beginning.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([("user", user), ("limit", String(limit))])
            try await options.list(
                "devices", at: container.path + "/devices" + query,
                [
                    .init("serial", "serial"), .init("user", "userRecordName"),
                    .init("device", "deviceID"), .init("gateway", "apnsEnvironment"),
                    .init("token", "apnsToken"), .init("topic", "topic"),
                    .init("registered", "registeredAt"),
                ])
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets a device, as at sign-out.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The device's ID.") var id: String
        @Option(help: "Whose it is; needed where several users have one of this ID.")
        var user: String?

        func run() async throws {
            let path = container.path + "/devices/" + ContainerOptions.escaped(id)
            try await options.call("DELETE", path + ContainerOptions.query([("user", user)]))
        }
    }
}
