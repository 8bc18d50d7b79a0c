/// What a server, or the way to it, answered to a command.
struct PostgresError: Error, Sendable, Hashable {
    /// The five characters of SQLSTATE; empty where the connection failed.
    let state: String
    /// In the server's language, one line.
    let message: String

    /// The first line of a text, which has what is wrong; libpq's go on with hints.
    static func line(_ text: String) -> String {
        let lines = text.split(whereSeparator: \.isNewline)
        return lines.first.map { String($0.prefix(300)) } ?? "no reason was given"
    }

    /// As a state of a follower.
    var problem: FollowProblem {
        switch state {
        case "": .unreachable(message)
        case "42501": .notPermitted(message)
        case "53400", "53300": .serverFull(message)
        case "55006": .slotTaken(message)
        default: .serverRefused("\(message) (\(state))")
        }
    }
}
