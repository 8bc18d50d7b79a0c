import PostgresFollowing
import RelayModel
import Testing

/// What is said of how it stands with a database that is followed.
@Suite struct FollowStatusTests {
    @Test func `what the server refuses hides nothing else`() {
        var status = FollowStatus(since: Timestamp(seconds: 0))
        status.state = .following
        #expect(status.word == "following")
        status.refusing = "It refuses changes."
        #expect(status.word == "lagging" && status.sentence == "It refuses changes.")
        status.warning = "It is about to throw away log."
        #expect(status.sentence == "It refuses changes. It is about to throw away log.")
        status.rowsOlder = 2
        #expect(status.sentence.hasPrefix("It refuses changes. Rows fired nothing"))
        status.refusing = nil
        #expect(status.sentence.hasPrefix("Rows fired nothing"))
    }
}
