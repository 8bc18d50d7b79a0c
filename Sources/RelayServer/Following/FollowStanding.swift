import PostgresFollowing
import RelayModel

/// How it stands with a source that follows a database.
enum FollowStanding: Sendable, Hashable {
    /// A follower runs.
    case followed(FollowStatus)
    /// What the source says cannot be followed at all.
    case refused(FollowProblem)
    /// A follower is about to begin.
    case begins
    /// Nobody follows: no relay runs, or it ends.
    case stopped

    /// Whether somebody must do something.
    enum Verdict: String, Sendable, CaseIterable {
        /// All is well.
        case well
        /// It waits for something that may come by itself, or should be looked at.
        case waiting
        /// It does not go on until somebody does something.
        case broken
    }

    /// The word for it in lists and metrics.
    var word: String {
        switch self {
        case .followed(let status): status.word
        case .refused(let problem): problem.code
        case .begins: "connecting"
        case .stopped: "stopped"
        }
    }

    /// One sentence, with what to do.
    var sentence: String {
        switch self {
        case .followed(let status): status.sentence
        case .refused(let problem): problem.advice
        case .begins: "Connecting."
        case .stopped: "Nobody follows: it goes on where it was when belfry serve is started."
        }
    }

    var verdict: Verdict {
        switch self {
        case .followed(let status):
            switch status.state {
            case .waiting(let problem): problem.needsSomebody ? .broken : .waiting
            case .connecting, .following, .takingSnapshot:
                status.concern == nil ? .well : .waiting
            }
        case .refused: .broken
        case .begins: .well
        case .stopped: .waiting
        }
    }

    /// The members that tell of it.
    var json: JSONObject {
        var object: JSONObject = [
            "state": .string(word), "verdict": .string(verdict.rawValue),
            "sentence": .string(sentence),
        ]
        guard case .followed(let status) = self else { return object }
        object["since"] = .string(status.since.iso8601)
        object["rows"] = .integer(Int64(clamping: status.rows))
        object["valuesLeftOut"] = .integer(Int64(clamping: status.valuesLeftOut))
        object["rowsOlder"] = .integer(Int64(clamping: status.rowsOlder))
        if status.lacksFailover { object["lacksFailover"] = true }
        object["authorsUnread"] = .integer(Int64(clamping: status.authorsUnread))
        object["confirmed"] = status.confirmed.map { .string($0.description) }
        object["lastCommit"] = status.lastCommit.map { .string($0.iso8601) }
        object["behindBytes"] = status.behindBytes.map { .integer(Int64(clamping: $0)) }
        object["retainedBytes"] = status.retainedBytes.map { .integer(Int64(clamping: $0)) }
        return object
    }
}
