import ArgumentParser

@main
struct Belfry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "belfry", subcommands: [GatewayCommand.self])
}
