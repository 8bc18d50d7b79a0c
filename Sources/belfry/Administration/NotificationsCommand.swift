import ArgumentParser
import RelayModel
import RelayServer

/// Users' notifications, for support.
struct NotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notifications",
        abstract: "List what is kept in users' inboxes and what waits for web couriers.",
        subcommands: [List.self, Couriers.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List a user's notifications; marking one as read moves it to the end.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "The user whose notifications they are.") var user: String
        @Option(help: "Only those after this sequence number.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(
                    .listNotifications, container.parts(["user": user]),
                    query: [("after", after.map(String.init))] + bound.query)
                let remarks = [
                    AdministrationOptions.more(answer), try remark(on: answer, of: client),
                ].compactMap(\.self)
                return CommandOutput(
                    answer, to: .listNotifications,
                    remark: remarks.isEmpty ? nil : remarks.joined(separator: "\n"))
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
            abstract: "List web couriers, with how much waits for each.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(.listCouriers, container.parts, upTo: bound.limit)
        }
    }
}

/// Users' sessions.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "List and revoke users' sessions.",
        subcommands: [List.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List sessions until their time is over, including revoked ones.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those of this user.") var user: String?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listSessions, container.parts, query: [("user", user)], upTo: bound.limit)
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End every session of a user, who must then sign in again for the next call.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The user.") var user: String

        func run() async throws {
            try await options.make(.revokeSessions, container.parts(["user": user]))
        }
    }
}
