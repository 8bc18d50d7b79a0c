import ArgumentParser
import RelayModel

/// An unknown command, and what was probably meant.
struct CommandSlip: CustomStringConvertible {
    /// The words before it, such as `belfry sources`.
    let path: String
    /// The unknown word.
    let word: String
    /// The known command with the most similar name.
    let meant: String?
    /// The known commands in its place, if they are few enough to list.
    let others: [String]

    /// Finds the first word of `arguments` that should name a command and does not.
    ///
    /// Returns `nil` if there is none; the parser then handles the arguments.
    init?(_ arguments: [String], below root: any ParsableCommand.Type) {
        var command = root
        var path = [root._commandName]
        // The parser's help for an unknown command would be the general help.
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

    /// Returns the words that name the command in `arguments`.
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
