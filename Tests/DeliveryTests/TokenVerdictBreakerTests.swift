import Gateway
import RelayModel
import RelayTestKit
import Testing

@testable import Delivery
@testable import Storage

/// Unknown tokens: whether the settings or the tokens are wrong, and who must not suffer from
/// them.
@Suite struct TokenVerdictBreakerTests {
    /// Returns a delivery to the device `serial` of a user.
    private func owed(
        to user: String, _ serial: UInt64, _ environment: GatewayEnvironment = .production
    ) -> OwedDelivery {
        var owed = Fixtures.delivery(at: serial)
        owed.delivery.owner = Fixtures.identifier(user)
        owed.delivery.gatewayEnvironment = environment
        owed.deviceSerial = serial
        return owed
    }

    @Test func `many users' unknown tokens without an accepted push mean wrong settings`() {
        var breaker = TokenVerdictBreaker()
        breaker.noteAcceptance(of: owed(to: "ann", 1, .development))
        let verdicts = (2...120).map { serial in
            breaker.judgeUnknownToken(of: owed(to: "user\(serial % 40)", serial))
        }
        let few = TokenVerdictBreaker.leastUnknown - 1
        #expect(verdicts.prefix(few).allSatisfy { $0 == .token })
        #expect(verdicts.dropFirst(few).allSatisfy { $0 == .settings })
    }

    @Test func `one user's unknown tokens never mean wrong settings`() {
        var breaker = TokenVerdictBreaker()
        for serial in 1...500 as ClosedRange<UInt64> {
            let user = ["ann", "bob"][Int(serial % 2)]
            #expect(breaker.judgeUnknownToken(of: owed(to: user, serial)) == .token)
        }
    }

    @Test func `made-up tokens of fifty users do not halt a topic with accepted pushes`() {
        var breaker = TokenVerdictBreaker()
        breaker.noteAcceptance(of: owed(to: "ann", 1))
        for serial in 2...20_000 as ClosedRange<UInt64> {
            #expect(breaker.judgeUnknownToken(of: owed(to: "user\(serial % 50)", serial)) == .token)
        }
    }

    @Test func `working tokens that all become unknown mean wrong settings`() {
        var breaker = TokenVerdictBreaker()
        let fleet = (1...40 as ClosedRange<UInt64>).map { owed(to: "user\($0)", $0) }
        for owed in fleet { breaker.noteAcceptance(of: owed) }
        // A few of the tokens end between accepted pushes.
        for owed in fleet.prefix(20) {
            #expect(breaker.judgeUnknownToken(of: owed) == .token)
            breaker.noteAcceptance(of: fleet[39])
        }
        let verdicts = fleet.suffix(20).map { breaker.judgeUnknownToken(of: $0) }
        #expect(verdicts.last == .settings)
        #expect(verdicts.count { $0 == .token } == TokenVerdictBreaker.leastUnknown - 1)
    }

    @Test func `working tokens try first, then old registrations of users without a failure`() {
        var breaker = TokenVerdictBreaker()
        for serial in 10...30 as ClosedRange<UInt64> {
            _ = breaker.judgeUnknownToken(of: owed(to: "user\(serial)", serial))
        }
        let working = owed(to: "ann", 99)
        breaker.noteAcceptance(of: owed(to: "ann", 99, .development))
        let waiting = [
            owed(to: "user10", 5), owed(to: "new", 50), owed(to: "old", 40), working,
        ]
        let tried = waiting.sorted { breaker.rank($0) < breaker.rank($1) }
        #expect(tried.map(\.deviceSerial) == [99, 40, 50, 5])
        #expect(waiting.map { breaker.isSuspect($0) } == [true, false, false, false])
        breaker.reset(Fixtures.container)
        #expect(!breaker.isSuspect(waiting[0]))
    }
}
