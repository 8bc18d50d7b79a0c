import ArgumentParser
import RelayModel
import RelayServer

/// Connected clients, and what they are shown.
struct LiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "List connected clients, and what is shown to them.",
        subcommands: [Clients.self, Groups.self])

    struct Clients: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "List connected clients: whose they are, how many queries each has, and who lags.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those after this number.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listLiveClients, container.parts,
                query: [("after", after.map(String.init))] + bound.query)
        }
    }

    struct Groups: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List what is shown to clients: queries that show the same are one group.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Only those after this number.") var after: UInt32?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.list(
                .listLiveGroups, container.parts,
                query: [("after", after.map { String($0) })] + bound.query)
        }
    }
}
