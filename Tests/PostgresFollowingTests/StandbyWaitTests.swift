import Testing

@testable import PostgresFollowing

/// When a server is said to wait for a standby that is away.
@Suite struct StandbyWaitTests {
    /// What looks say that find the server waiting, or not, and how far it has told what it has.
    private static func said(_ looks: [(isWaiting: Bool, place: UInt64)]) -> [Bool] {
        var wait = StandbyWait()
        var said: [Bool] = []
        for look in looks {
            let place = PostgresPosition(rawValue: look.place)
            said.append(wait.look(isWaiting: look.isWaiting, at: place))
        }
        return said
    }

    @Test func `a server that waits at the same place is held up until it goes on`() {
        let looks: [(isWaiting: Bool, place: UInt64)] = [
            (true, 7), (true, 7), (true, 7), (true, 8), (true, 8), (false, 8), (true, 8),
        ]
        #expect(Self.said(looks) == [false, true, true, false, true, false, false])
    }

    /// It waits for each standby that is well, too, whenever something is written.
    @Test func `a server of much work is held up at no look that finds it waiting elsewhere`() {
        let looks = (UInt64(1)...10).map { (isWaiting: true, place: $0) }
        #expect(!Self.said(looks).contains(true))
    }
}
