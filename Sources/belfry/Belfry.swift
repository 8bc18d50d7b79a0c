import ArgumentParser

@main
struct Belfry: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "belfry",
        abstract: "CloudKit-style subscriptions for any database.",
        subcommands: [PredicateCommand.self])
}
