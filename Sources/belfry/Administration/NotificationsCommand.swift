import ArgumentParser
import RelayModel
import RelayServer

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
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "The user whose they are.") var user: String
        @Option(help: "Those after this sequence number.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(
                    .listNotifications, container.parts(["user": user]),
                    query: [("after", after.map(String.init))] + bound.query)
                return CommandOutput(
                    answer, to: .listNotifications, remark: try remark(on: answer, of: client))
            }
        }

        private func remark(
            on answer: JSONValue, of client: AdministrationClient
        ) throws -> String? {
            guard answer.member(["keepsInbox"]) == false else { return nil }
            let name = try client.name(of: container.container)
            return "The inboxes of \(name) (\(container.environment)) are off, so "
                + "nothing is kept in them: belfry containers set --inbox on"
        }
    }

    struct Couriers: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists web couriers, with how much waits for each.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.make(
                .listCouriers, container.parts, query: bound.query)
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
            abstract: "Lists sessions until their time is over, revoked ones included.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Those of this user.") var user: String?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.make(
                .listSessions, container.parts, query: [("user", user)] + bound.query)
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends every session of a user: the next call must sign in again.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The user.") var user: String

        func run() async throws {
            try await options.make(.revokeSessions, container.parts(["user": user]))
        }
    }
}
