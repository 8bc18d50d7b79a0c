/// Where an update brought a record, as the condition of a query of changes says.
enum LiveTransition: String, Sendable {
    /// It fitted before, too.
    case stayed
    /// It did not fit before.
    case entered
    /// It fits no more.
    case left
    /// The change does not show the record before, or not what the condition reads of it.
    case unknown
}
