import ArgumentParser
import RelayModel
import RelayServer

/// Subscriptions, for support.
struct SubscriptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "List and delete subscriptions, and show their index.",
        subcommands: [List.self, Delete.self, Index.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the subscriptions, the newest first, with how they have fared.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those of this user.") var user: String?
        @Option(help: "Only those on records of this type.") var type: String?
        @Option(help: "Only those in this state: active or disabled.") var state: String?
        @Option(help: "Only those before this serial.") var before: UInt64?
        @Option(help: "Only those after this serial, the oldest first.") var after: UInt64?
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
        static let configuration = CommandConfiguration(abstract: "Delete a subscription.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "The user whose subscription it is.") var user: String
        @Option(help: "The database: public, private or shared.") var scope = "public"
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
            abstract: "Show what the index of the subscriptions holds, and what matching cost.",
            discussion: """
                The figures are those of the running relay. What the index holds: subscriptions, \
                keys, postings by what has to be verified, residuals (which the relay looks at for \
                every change of their record type), bytes, and the keys by field. Since the start: \
                changes, matches, candidates, confirmed candidates, and evaluation errors. With \
                --database no relay runs, and so there is no index.
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
        commandName: "devices", abstract: "List and delete devices.",
        subcommands: [List.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices, the newest first, with the beginning of each token.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those of this user.") var user: String?
        @Option(help: "Only those with this ID.") var device: String?
        @Option(help: "Only those before this serial.") var before: UInt64?
        @Option(help: "Only those after this serial, the oldest first.") var after: UInt64?
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
            abstract: "Forget a device, as at sign-out.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The device's ID.") var id: String
        @Option(
            help: "The user whose device it is; needed where several users have one with this ID.")
        var user: String?

        func run() async throws {
            try await options.make(
                .forgetDevice, container.parts(["device": id]), query: [("user", user)])
        }
    }
}
