import PostgresFollowing
import RelayModel

/// The state of a source that follows a database.
enum FollowStanding: Sendable, Hashable {
    /// A follower runs.
    case followed(FollowStatus)
    /// The source's settings cannot be followed at all.
    case refused(FollowProblem)
    /// A follower is about to start.
    case begins
    /// There is no follower, because no relay runs or it is ending.
    case stopped

    /// Whether an operator must act.
    enum Verdict: String, Sendable, CaseIterable {
        /// All is well.
        case well
        /// It waits for something that may come by itself, or should be examined.
        case waiting
        /// It does not continue until an operator acts.
        case broken
    }

    /// The word for the state in lists and metrics.
    var word: String {
        switch self {
        case .followed(let status): status.word
        case .refused(let problem): problem.code
        case .begins: "connecting"
        case .stopped: "stopped"
        }
    }

    /// One sentence about the state, with advice.
    var sentence: String {
        switch self {
        case .followed(let status): status.sentence
        case .refused(let problem): problem.advice
        case .begins: "Connecting."
        case .stopped:
            "Not following: no relay is running. It continues where it stopped once belfry serve "
                + "is started."
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

    /// The members of the JSON object that describes it.
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
