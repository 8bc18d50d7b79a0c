import RelayModel
import Storage

/// What is read of a dead letter's text without reading the delivery whole.
struct LetterText {
    /// The second after which nobody wants it any more.
    let expiration: Int64?
    /// The lane in which it waits as a retry.
    let lane: String
    /// Whether it tells of a record by its newest change only.
    let collapses: Bool

    /// `nil` if it is not what Belfry writes: then it could not be sent either.
    init?(_ text: String) {
        guard case .object(let object)? = try? JSONValue(stored: text),
            case .string(let environment)? = object["gatewayEnvironment"],
            case .string(let topic)? = object["topic"]
        else { return nil }
        lane = "\(environment) \(topic)"
        collapses = object["collapsing"] != nil
        if case .object(let moment)? = object["expiration"],
            case .array(let parts)? = moment["$ts"], case .integer(let seconds)? = parts.first
        {
            expiration = seconds
        } else {
            expiration = nil
        }
    }

    /// Whether nobody wants it any more at `now`.
    func isExpired(at now: Timestamp) -> Bool {
        expiration.map { $0 <= now.seconds } ?? false
    }
}
