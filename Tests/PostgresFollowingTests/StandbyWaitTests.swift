import Testing

@testable import PostgresFollowing

/// How a follower recognises that a server waits for a missing standby.
@Suite struct StandbyWaitTests {
    /// Returns the verdict of each look.
    ///
    /// A look says whether the server is waiting, and the place up to which it has sent its log.
    private static func said(_ looks: [(isWaiting: Bool, place: UInt64)]) -> [Bool] {
        var wait = StandbyWait()
        var said: [Bool] = []
        for look in looks {
            let place = PostgresPosition(rawValue: look.place)
            said.append(wait.look(isWaiting: look.isWaiting, at: place))
        }
        return said
    }

    @Test func `a server that waits at the same place counts as blocked until it advances`() {
        let looks: [(isWaiting: Bool, place: UInt64)] = [
            (true, 7), (true, 7), (true, 7), (true, 8), (true, 8), (false, 8), (true, 8),
        ]
        #expect(Self.said(looks) == [false, true, true, false, true, false, false])
    }

    /// The server briefly waits for each healthy standby too, whenever something is written.
    @Test func `a busy server that waits at changing places does not count as blocked`() {
        let looks = (UInt64(1)...10).map { (isWaiting: true, place: $0) }
        #expect(!Self.said(looks).contains(true))
    }
}
