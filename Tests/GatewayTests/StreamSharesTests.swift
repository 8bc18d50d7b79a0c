import RelayModel
import RelayTestKit
import Testing

@testable import Gateway

/// The share of open streams of a container beside others.
@Suite struct StreamSharesTests {
    private let one = Fixtures.container
    private let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    private func moment(_ seconds: UInt64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `a container is held once its pace is used up, until one of its requests ends`() {
        var shares = StreamShares(most: 1000)
        for _ in 0..<PushPace.first {
            #expect(!shares.holds(one))
            shares.begin(one, at: moment(1))
        }
        #expect(shares.holds(one))
        #expect(!shares.holds(other))
        shares.end(one, after: .milliseconds(1))
        #expect(!shares.holds(one))
    }

    @Test func `a container without open requests is never held, and forgotten after a minute`() {
        var shares = StreamShares(most: 1)
        shares.begin(one, at: moment(1))
        #expect(shares.holds(one))
        shares.sweep(at: moment(1000))
        #expect(shares.holds(one))
        shares.end(one, after: .zero)
        #expect(!shares.holds(one))
        shares.sweep(at: moment(1000))
        // An end that comes after the container was forgotten has no effect.
        shares.end(one, after: .zero)
        #expect(!shares.holds(one))
    }
}
