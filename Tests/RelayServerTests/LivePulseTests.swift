import NIOCore
import Testing

@testable import RelayServer

/// When the relay sends a ping to a client, and when it considers the client gone.
@Suite struct LivePulseTests {
    private static func moment(_ seconds: Int) -> NIODeadline {
        .uptimeNanoseconds(UInt64(seconds) * 1_000_000_000)
    }

    /// The moments at which a relay checks its connections.
    private static func looks(until end: Int) -> [NIODeadline] {
        stride(from: 5, through: end, by: 5).map { moment($0) }
    }

    @Test func `a client that constantly gets frames is pinged`() {
        var pulse = LivePulse(at: Self.moment(0))
        var asked = 0
        for now in Self.looks(until: 600) {
            #expect(!pulse.isUntold(at: now))
            #expect(!pulse.isGone(at: now))
            pulse.spoke = now
            guard pulse.isQuiet(at: now) else { continue }
            asked += 1
            // Browsers answer pings.
            pulse.heard = now
        }
        #expect((10...25).contains(asked))
    }

    @Test func `a client that does not answer is pinged again and then considered gone`() {
        let pulse = LivePulse(at: Self.moment(0))
        let asked = Self.looks(until: 70).filter { pulse.isQuiet(at: $0) }
        #expect(asked.count > 1)
        #expect(!pulse.isGone(at: Self.moment(70)))
        #expect(pulse.isGone(at: Self.moment(75)))
    }

    @Test func `an idle client is told how far everything has been sent`() {
        var pulse = LivePulse(at: Self.moment(0))
        #expect(!pulse.isUntold(at: Self.moment(25)))
        #expect(pulse.isUntold(at: Self.moment(26)))
        pulse.spoke = Self.moment(26)
        #expect(!pulse.isUntold(at: Self.moment(50)))
    }

    @Test func `a slow but steady reader is not considered stuck`() {
        var taking = LiveTaking(at: Self.moment(0))
        var bytes = 300_000
        for now in Self.looks(until: 600) {
            let takes = taking.look(at: now, bytes)
            #expect(takes == (bytes < 300_000))
            #expect(!taking.isStuck(at: now))
            bytes -= 1000
        }
    }

    @Test func `a client that reads nothing for half a minute is considered stuck`() {
        var taking = LiveTaking(at: Self.moment(0))
        let takes = Self.looks(until: 30).map { taking.look(at: $0, 300_000) }
        #expect(!takes.contains(true))
        #expect(!taking.isStuck(at: Self.moment(30)))
        #expect(taking.isStuck(at: Self.moment(35)))
        taking.take(at: Self.moment(35))
        #expect(!taking.isStuck(at: Self.moment(65)))
        // An increase of what waits shows no reading, and neither do frames that were dropped.
        let more = taking.look(at: Self.moment(70), 400_000)
        taking.forget()
        let none = taking.look(at: Self.moment(75), 100_000)
        #expect(!more && !none && taking.isStuck(at: Self.moment(75)))
    }
}
