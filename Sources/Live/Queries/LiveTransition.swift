/// Where an update moved a record, as judged by the condition of a query of changes.
enum LiveTransition: String, Sendable {
    /// The record fitted before, too.
    case stayed
    /// The record did not fit before.
    case entered
    /// The record does not fit any more.
    case left
    /// Unknown: the change does not carry what the condition reads of the record before.
    case unknown
}
