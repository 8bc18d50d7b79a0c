package import RelayModel

/// Holds connections and sends frames to them; there is one hub for each event loop, and one for
/// calls over HTTP.
///
/// Commands are executed in the order in which they are posted.
package protocol LiveHub: AnyObject, Sendable {
    /// Enqueues commands for execution in order, without waiting.
    func post(_ commands: [LiveCommand])
    /// Returns once nearly all posted commands have been executed.
    func room() async
}

/// A command to a hub.
package enum LiveCommand: Sendable {
    /// Sends frames to one client.
    case send(UInt64, [LiveFrame])
    /// Sends one client a result, whose frames are made as it takes them.
    case show(UInt64, LiveResult)
    /// Sends one client the `at` frame that closes what it was sent, as of a position.
    case close(UInt64, LiveFrame, LogPosition)
    /// Reaches the mark once the client has taken everything that was sent before.
    case mark(UInt64, LiveMark)
    /// Makes a client a member of a group.
    case join(UInt64, UInt32)
    /// Removes a client from a group.
    case leave(UInt64, UInt32)
    /// Sends the frames of several changes to the members of their groups, and then the `at` frame
    /// to those that got any.
    case deliver([LiveGroupFrame], LiveFrame, LogPosition)
    /// Notes that a client was sent notifications of the changes at these positions.
    case told(UInt64, [LogPosition])
    /// Marks a client as up to date, so that it is sent changes again.
    case caughtUp(UInt64)
}
