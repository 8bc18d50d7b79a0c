import RelayModel
import Storage

/// The parts of a dead letter's text that can be read without decoding the whole delivery.
struct LetterText {
    /// The Unix time in seconds at which the notification expires; `nil` if it does not.
    let expiration: Int64?
    /// The lane in which the delivery waits as a retry.
    let lane: String
    /// Whether the delivery may be replaced by a newer one for the same record.
    let collapses: Bool

    /// Returns `nil` if the text is not what Belfry writes, because then it could not be sent
    /// either.
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

    /// Returns whether the notification has expired at `now`.
    func isExpired(at now: Timestamp) -> Bool {
        expiration.map { $0 <= now.seconds } ?? false
    }
}
