import ArgumentParser
import RelayModel
import RelayServer

/// Subscriptions, for whoever has to help a user.
struct SubscriptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "Lists and deletes subscriptions, and shows their index.",
        subcommands: [List.self, Delete.self, Index.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the subscriptions, the newest first, with how they have fared.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @Option(help: "Those on records of this type.") var type: String?
        @Option(help: "active or disabled.") var state: String?
        @Option(help: "Those before this serial.") var before: UInt64?
        @Option(help: "Those after this serial instead, the oldest first.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listSubscriptions, container.parts,
                query: [
                    ("user", user), ("recordType", type), ("state", state),
                    ("before", before.map(String.init)), ("after", after.map(String.init)),
                ] + bound.query)
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Deletes a subscription.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "The user whose it is.") var user: String
        @Option(help: "public, private or shared.") var scope = "public"
        @Argument(help: "The subscription's ID.") var id: String

        func run() async throws {
            try await options.make(
                .deleteSubscription,
                container.parts(["database": scope, "user": user, "subscription": id]))
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
        @OptionGroup var container: UsualContainerOptions

        func run() async throws {
            try await options.make(.showIndex, container.parts)
        }
    }
}

/// Devices and their tokens.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists and deletes devices.",
        subcommands: [List.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the devices, the newest first; of tokens, the beginning.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @Option(help: "Those with this ID.") var device: String?
        @Option(help: "Those before this serial.") var before: UInt64?
        @Option(help: "Those after this serial instead, the oldest first.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listDevices, container.parts,
                query: [
                    ("user", user), ("device", device), ("before", before.map(String.init)),
                    ("after", after.map(String.init)),
                ] + bound.query)
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets a device, as at sign-out.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The device's ID.") var id: String
        @Option(help: "Whose it is; needed where several users have one of this ID.")
        var user: String?

        func run() async throws {
            try await options.make(
                .forgetDevice, container.parts(["device": id]), query: [("user", user)])
        }
    }
}
