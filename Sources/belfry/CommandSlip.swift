import ArgumentParser
import RelayModel

/// A command that nobody has, and what was probably meant.
struct CommandSlip: CustomStringConvertible {
    /// The words before it: `belfry sources`.
    let path: String
    /// What was typed.
    let word: String
    /// The command whose name is nearest.
    let meant: String?
    /// The commands that there are in its place, where these are few enough to be said.
    let others: [String]

    /// The first word of `arguments` that should name a command and does not; `nil` leaves it to
    /// the parser.
    init?(_ arguments: [String], below root: any ParsableCommand.Type) {
        var command = root
        var path = [root._commandName]
        // Help on a command that nobody has would be help on all.
        for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
            let known = command.configuration.subcommands
            guard !word.hasPrefix("-"), word != "help", !known.isEmpty,
                command.configuration.defaultSubcommand == nil
            else { return nil }
            guard let next = known.first(where: { Self.names($0).contains(word) }) else {
                self.path = path.joined(separator: " ")
                self.word = word
                let isFirst = path.count == 1
                meant = NearestWord.to(
                    word, among: known.flatMap(Self.names) + (isFirst ? ["help"] : []))
                others = isFirst ? [] : known.map { $0._commandName }
                return
            }
            command = next
            path.append(word)
        }
        return nil
    }

    var description: String {
        let meant = meant.map { "did you mean '\(path) \($0)'?" }
        let told = others.isEmpty ? nil : "'\(path)' has " + others.joined(separator: ", ")
        return "Error: there is no command '\(path) \(word)'"
            + ((meant ?? told).map { "; \($0)" } ?? "")
            + "\n  See '\(path) --help' for all of them.\n"
    }

    /// The words that name the command of `arguments`.
    static func path(_ arguments: [String], below root: any ParsableCommand.Type) -> String {
        var command = root
        var path = [root._commandName]
        for word in arguments {
            guard
                let next = command.configuration.subcommands
                    .first(where: { names($0).contains(word) })
            else { break }
            command = next
            path.append(word)
        }
        return path.joined(separator: " ")
    }

    private static func names(_ command: any ParsableCommand.Type) -> [String] {
        [command._commandName] + command.configuration.aliases
    }
}
