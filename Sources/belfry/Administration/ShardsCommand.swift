import ArgumentParser
import RelayServer

/// The shards of a service, as one of its relays knows them.
struct ShardsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shards",
        abstract: "List the shards of the service, as the relay that you ask knows them.",
        discussion: """
            Each shard is a store with an owner of its own. What the relay knows is some hundred \
            milliseconds old; belfry nodes asks the database instead, and shows the relays that \
            stand by.
            """)

    @OptionGroup var options: AdministrationOptions

    func run() async throws {
        try await options.make(.listShards)
    }
}
