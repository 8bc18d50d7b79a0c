import ArgumentParser
import RelayServer

/// The shards of a service, as a relay of it knows them.
struct ShardsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shards",
        abstract: "Lists the shards of the service, as the relay asked knows them.",
        discussion: """
            Each is a store with an owner of its own. What the relay knows is some hundred \
            milliseconds old; belfry nodes asks the database instead, and shows who stands by.
            """)

    @OptionGroup var options: AdministrationOptions

    func run() async throws {
        try await options.make(.listShards)
    }
}
