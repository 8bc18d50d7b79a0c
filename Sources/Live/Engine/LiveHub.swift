package import RelayModel

/// Where connections stand, and what goes out to them: one for each event loop, or for the calls
/// over HTTP.
///
/// What is posted is done in order.
package protocol LiveHub: AnyObject, Sendable {
    /// Does these, later, in order; it never waits.
    func post(_ commands: [LiveCommand])
    /// Returns once what was posted has been done, except for a little.
    func room() async
}

/// What a hub is told to do.
package enum LiveCommand: Sendable {
    /// Sends frames to one client.
    case send(UInt64, [LiveFrame])
    /// Sends one client a result, whose frames are made as it takes them.
    case show(UInt64, LiveResult)
    /// Sends one client the frame that closes what it got, as of a position.
    case close(UInt64, LiveFrame, LogPosition)
    /// Says when a client has taken what was sent to it before.
    case mark(UInt64, LiveMark)
    /// Makes a client a member of a group.
    case join(UInt64, UInt32)
    /// Ends that.
    case leave(UInt64, UInt32)
    /// Sends what several changes did to the members of groups, and closes it for those who got
    /// something.
    case deliver([LiveGroupFrame], LiveFrame, LogPosition)
    /// Notes that a client was sent what tells of changes.
    case told(UInt64, [LogPosition])
    /// The client is up to date again, and may be sent what comes.
    case caughtUp(UInt64)
}
