import ArgumentParser
import RelayModel

/// What users were notified of, for whoever has to help one.
struct NotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notifications",
        abstract: "Lists what is kept in users' inboxes and waits for web couriers.",
        subcommands: [List.self, Couriers.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists a user's notifications; marking one read moves it to the end.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "The user whose they are.") var user: String
        @Option(help: "Those after this sequence number.") var after: UInt64?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([
                ("after", after.map(String.init)), ("limit", String(limit)),
            ])
            let path = container.path + "/notifications/" + ContainerOptions.escaped(user) + query
            try await options.list(
                "notifications", at: path,
                [
                    .init("sequence", "sequence"), .init("notification", "notificationID"),
                    .init("subscription", "subscriptionID"), .init("database", "database"),
                    .init("type", "notificationType"), .init("position", "position"),
                    .init("created", "createdAt"), .init("read", "readAt"),
                ])
        }
    }

    struct Couriers: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists web couriers, with how much waits for each.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([("limit", String(limit))])
            try await options.list(
                "couriers", at: container.path + "/couriers" + query,
                [
                    .init("serial", "serial"), .init("user", "userRecordName"),
                    .init("device", "deviceID"), .init("token", "apnsToken"),
                    .init("waiting", "waiting"), .init("polled", "polledAt"),
                ])
        }
    }
}

/// Users' sessions.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "Lists and revokes users' sessions.",
        subcommands: [List.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists sessions that have not ended, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @Option(help: "So many at the most.") var limit = 100

        func run() async throws {
            let query = ContainerOptions.query([("user", user), ("limit", String(limit))])
            try await options.list(
                "sessions", at: container.path + "/sessions" + query,
                [
                    .init("user", "userRecordName"), .init("session", "session"),
                    .init("started", "startedAt"), .init("ends", "endsAt"),
                    .init("revoked", "revokedAt"),
                ])
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends every session of a user: the next call must sign in again.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: ContainerOptions
        @Argument(help: "The user.") var user: String

        func run() async throws {
            let path = container.path + "/sessions/" + ContainerOptions.escaped(user)
            try await options.call("DELETE", path)
        }
    }
}
