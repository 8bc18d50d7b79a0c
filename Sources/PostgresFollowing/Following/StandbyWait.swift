/// Whether a server tells nothing because it waits for a standby that is away.
///
/// For a standby that is well it waits as well, a moment each time that something is written: where
/// much is, most looks find it waiting. So it must not have told anything since the look before.
struct StandbyWait: Sendable {
    /// How far it had told what it has when the last look found it waiting; `nil` if that did not.
    private var place: PostgresPosition?

    /// Takes in what a look found: whether it waits for standbys, and how far it has told.
    ///
    /// - Returns: Whether it is held up.
    mutating func look(isWaiting: Bool, at place: PostgresPosition) -> Bool {
        let isHeldUp = isWaiting && self.place == place
        self.place = isWaiting ? place : nil
        return isHeldUp
    }
}
