/// What one client is sent of what it missed.
extension LiveEngine {
    /// Takes the room for frames that tell a client what it missed.
    ///
    /// A connection for which too much waits is ended. A client that missed more than that would
    /// be ended again each time it comes back, so it begins anew.
    ///
    /// - Returns: Whether there is room for them.
    func takesRoom(for news: [LiveFrame], of number: UInt64) -> Bool {
        let bytes = news.reduce(clients[number]?.missedBytes ?? 0) { $0 + $1.count }
        guard bytes <= settings.bytesToldPerClient else { return false }
        clients[number]?.missedBytes = bytes
        return true
    }

    /// Returns whether all of a client's queries in a group end with one change.
    func endsWithOne(_ client: LiveClient, in group: LiveGroup) -> Bool {
        client.queries.values.allSatisfy { $0.group != group.number || $0.query.isOnce }
    }
}
