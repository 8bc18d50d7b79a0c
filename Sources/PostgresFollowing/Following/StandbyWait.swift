/// Decides whether a server sends nothing because it waits for a standby that is down.
///
/// A server also waits briefly for a healthy standby at each write. If there are many writes, most
/// looks find it waiting. So it must not have sent anything since the look before.
struct StandbyWait: Sendable {
    /// How far the server had sent its log when the last look found it waiting; `nil` if it was not
    /// waiting.
    private var place: PostgresPosition?

    /// Records a look: whether the server waits for standbys, and how far it has sent its log.
    ///
    /// - Returns: Whether it is held up.
    mutating func look(isWaiting: Bool, at place: PostgresPosition) -> Bool {
        let isHeldUp = isWaiting && self.place == place
        self.place = isWaiting ? place : nil
        return isHeldUp
    }
}
