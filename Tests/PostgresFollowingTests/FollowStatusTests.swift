import PostgresFollowing
import RelayModel
import Testing

/// The status that a follower reports.
@Suite struct FollowStatusTests {
    @Test func `a refusal of the server hides no other problem`() {
        var status = FollowStatus(since: Timestamp(seconds: 0))
        status.state = .following
        #expect(status.word == "following")
        status.refusing = "It refuses changes."
        #expect(status.word == "lagging" && status.sentence == "It refuses changes.")
        status.warning = "It is about to remove log."
        #expect(status.sentence == "It refuses changes. It is about to remove log.")
        status.rowsOlder = 2
        #expect(status.sentence.hasPrefix("It refuses changes. Rows fired nothing"))
        status.refusing = nil
        #expect(status.sentence.hasPrefix("Rows fired nothing"))
    }

    @Test func `rows that were too long are counted, and the last one is named`() {
        var status = FollowStatus(since: Timestamp(seconds: 0))
        status.state = .following
        status.rowsTooLong = 2
        status.lastTooLong = "public.t (id=7)"
        #expect(status.word == "lagging")
        #expect(status.sentence.contains("(2 so far, the last one public.t (id=7))"))
        status.rowsOlder = 1
        #expect(status.sentence.contains("public.t (id=7)"))
        #expect(status.sentence.contains("Rows fired nothing"))
    }
}
