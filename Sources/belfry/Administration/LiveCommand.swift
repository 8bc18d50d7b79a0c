import ArgumentParser
import RelayModel
import RelayServer

/// Who is connected, and what they are shown.
struct LiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "Lists connected clients, and what is shown to them.",
        subcommands: [Clients.self, Groups.self])

    struct Clients: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists connected clients: whose, how many queries, and who lags.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Those after this number.") var after: UInt64?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.make(
                .listLiveClients, container.parts,
                query: [("after", after.map(String.init))] + bound.query)
        }
    }

    struct Groups: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists what is shown: queries that show the same are one group.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "Those after this number.") var after: UInt32?
        @OptionGroup var bound: LimitOptions

        func run() async throws {
            try await options.make(
                .listLiveGroups, container.parts,
                query: [("after", after.map { String($0) })] + bound.query)
        }
    }
}
