import Testing

@testable import Gateway

/// Returns the moment `milliseconds` after the clock's zero.
func at(_ milliseconds: UInt64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct ConnectionLifeTests {
    private func life(_ change: (inout ConnectionBounds) -> Void = { _ in }) -> ConnectionLife {
        var bounds = ConnectionBounds()
        change(&bounds)
        return ConnectionLife(bornAt: at(0), bounds: bounds)
    }

    private func openLife(_ change: (inout ConnectionBounds) -> Void = { _ in }) -> ConnectionLife {
        var life = life(change)
        life.handOver(at: at(0))
        life.establish(at: at(10))
        life.finish(.accepted, at: at(20))
        return life
    }

    @Test func `a new connection takes only one request`() {
        var life = life()
        #expect(life.vacancies(width: 100) == 1)
        life.handOver(at: at(0))
        #expect(life.vacancies(width: 100) == 0)
        life.establish(at: at(10))
        #expect(life.state == .probing)
        #expect(life.vacancies(width: 100) == 0)
    }

    @Test func `the first accepted request opens the full width`() {
        let life = openLife()
        #expect(life.state == .open)
        #expect(life.vacancies(width: 100) == 100)
    }

    @Test func `a refusal does not open the width`() {
        var life = life()
        life.handOver(at: at(0))
        life.establish(at: at(10))
        life.finish(.refused(.keep), at: at(20))
        #expect(life.state == .probing)
        #expect(life.vacancies(width: 100) == 1)
    }

    @Test(arguments: [
        (ConnectionLife.Ending.refused(.retire), RetirementCause.refused),
        (.broke(.closing), .closing),
        (.broke(.broken), .broken),
    ])
    func `an ending that concerns the whole connection retires it`(
        ending: ConnectionLife.Ending, cause: RetirementCause
    ) {
        var life = openLife()
        life.handOver(at: at(30))
        life.finish(ending, at: at(40))
        #expect(life.state == .draining(cause))
        #expect(life.vacancies(width: 100) == 0)
        let action = life.tick(at: at(41))
        #expect(action == .close)
    }

    @Test func `the idle time of a connection starts with its last answer`() {
        var life = openLife()
        life.handOver(at: at(30))
        #expect(life.idleTime(at: at(1000)) == .zero)
        life.finish(.accepted, at: at(1040))
        #expect(life.idleTime(at: at(1100)) == .milliseconds(60))
    }

    @Test func `a reset stream leaves the connection open`() {
        var life = openLife()
        life.handOver(at: at(30))
        life.finish(.failed, at: at(40))
        #expect(life.state == .open)
    }

    @Test func `three requests without an answer retire the connection`() {
        var life = openLife()
        for _ in 0..<3 { life.handOver(at: at(30)) }
        life.finish(.timedOut, at: at(40))
        life.finish(.timedOut, at: at(41))
        #expect(life.state == .open)
        life.finish(.timedOut, at: at(42))
        #expect(life.state == .draining(.unanswered))
    }

    @Test
    func `a connection that is silent for long takes no requests, and keeps the open ones`() {
        var life = openLife {
            $0.watchdog = .seconds(15)
            $0.answer = .seconds(60)
        }
        life.handOver(at: at(1000))
        let early = life.tick(at: at(15_999))
        #expect(early == .none)
        #expect(life.takesRequests && life.vacancies(width: 100) == 99)
        let late = life.tick(at: at(16_000))
        #expect(late == .none)
        #expect(!life.takesRequests && life.vacancies(width: 100) == 0)
        #expect(life.isUsable && !life.isRamping)
    }

    @Test(arguments: [ConnectionLife.Ending.accepted, .refused(.keep), .failed])
    func `a slow answer clears the suspicion`(ending: ConnectionLife.Ending) {
        var life = openLife { $0.watchdog = .seconds(15) }
        life.handOver(at: at(1000))
        _ = life.tick(at: at(16_000))
        life.finish(ending, at: at(21_000))
        #expect(life.takesRequests && life.vacancies(width: 100) == 100)
    }

    @Test func `a first request that is answered slowly opens the connection`() {
        var life = life { $0.watchdog = .seconds(15) }
        life.handOver(at: at(0))
        life.establish(at: at(10))
        _ = life.tick(at: at(15_010))
        #expect(!life.takesRequests && !life.isRamping)
        life.finish(.accepted, at: at(25_000))
        #expect(life.state == .open && life.takesRequests)
    }

    @Test func `a suspect connection is dropped when all its requests have timed out`() {
        var life = openLife { $0.watchdog = .seconds(15) }
        life.handOver(at: at(1000))
        _ = life.tick(at: at(16_000))
        life.finish(.timedOut, at: at(61_000))
        let action = life.tick(at: at(61_001))
        #expect(action == .close)
        #expect(life.state == .draining(.silent))
    }

    @Test func `a request that has lost its timer is not waited for forever`() {
        var life = openLife {
            $0.watchdog = .seconds(15)
            $0.answer = .seconds(60)
        }
        life.handOver(at: at(1000))
        let early = life.tick(at: at(75_999))
        let late = life.tick(at: at(76_000))
        #expect(early == .none)
        #expect(late == .drop(.silent))
    }

    @Test func `every answer restarts the watchdog`() {
        var life = openLife { $0.watchdog = .seconds(15) }
        life.handOver(at: at(1000))
        life.handOver(at: at(1000))
        life.finish(.accepted, at: at(10_000))
        _ = life.tick(at: at(24_999))
        #expect(life.takesRequests)
        _ = life.tick(at: at(25_000))
        #expect(!life.takesRequests)
    }

    @Test(arguments: [
        RetirementCause.aged, .credentialReplaced, .shuttingDown, .refused, .unanswered, .idle,
    ])
    func `a connection that the relay retires waits for slow answers`(cause: RetirementCause) {
        var life = openLife { $0.answer = .seconds(60) }
        life.handOver(at: at(1000))
        life.retire(cause)
        let action = life.tick(at: at(60_999))
        #expect(action == .none)
        life.finish(.accepted, at: at(61_000))
        let done = life.tick(at: at(61_001))
        #expect(done == .close)
    }

    @Test(arguments: RetirementCause.allCases)
    func `a connection that ends without an accepted push counts as one failure`(
        cause: RetirementCause
    ) {
        var life = life()
        life.handOver(at: at(0))
        life.establish(at: at(10))
        let before = life.blame()
        life.finish(.refused(.keep), at: at(20))
        life.retire(cause)
        let blames = [life.blame(), life.blame()]
        #expect(!before)
        #expect(blames == [cause.isGateways, false])
        var useful = openLife()
        useful.retire(cause)
        let usefulBlame = useful.blame()
        #expect(!usefulBlame)
    }

    @Test func `an idle connection is not silent`() {
        var life = openLife { $0.watchdog = .seconds(15) }
        let action = life.tick(at: at(3_600_000))
        #expect(action == .none)
    }

    @Test func `a connection that cannot be opened is dropped as not opened`() {
        var life = life {
            $0.connecting = .seconds(10)
            $0.watchdog = .seconds(15)
        }
        life.handOver(at: at(0))
        let early = life.tick(at: at(24_999))
        let late = life.tick(at: at(25_000))
        #expect(early == .none)
        #expect(late == .drop(.connectFailed))
    }

    @Test func `a gateway that hangs after a goodbye gets less time`() {
        var life = openLife { $0.draining = .seconds(5) }
        life.handOver(at: at(1000))
        life.retire(.closing)
        let early = life.tick(at: at(5999), tolerating: .seconds(15))
        let late = life.tick(at: at(6000), tolerating: .seconds(15))
        #expect(early == .none)
        #expect(late == .drop(.silent))
    }

    /// The draining time counts from the goodbye, however long the connection was silent before.
    ///
    /// Otherwise pushes that the gateway is about to answer would be sent again.
    @Test(arguments: [(15, 5), (20, 20), (75, 75)])
    func `requests that are open at a goodbye get their time from then on`(
        tolerance: Int, patience: Int
    ) {
        var life = openLife { $0.draining = .seconds(5) }
        life.handOver(at: at(1000))
        life.closing(at: at(9000))
        #expect(life.state == .draining(.closing))
        let end = UInt64(9000 + patience * 1000)
        let early = life.tick(at: at(end - 1), tolerating: .seconds(tolerance))
        // Further GOAWAY frames do not prolong the time.
        life.closing(at: at(end - 1))
        let late = life.tick(at: at(end), tolerating: .seconds(tolerance))
        #expect(early == .none)
        #expect(late == .drop(.silent))
    }

    /// Otherwise a gateway that says goodbye on every connection and answers nothing would pass
    /// for a slow one, and connection after connection would be opened.
    @Test func `a goodbye before any accepted push makes the open requests doubtful`() {
        var first = life()
        first.handOver(at: at(0))
        first.establish(at: at(10))
        #expect(!first.isDoubtful && !first.isEnding)
        first.closing(at: at(20))
        #expect(first.isDoubtful && first.isEnding)
        var later = openLife()
        later.handOver(at: at(30))
        later.closing(at: at(40))
        #expect(!later.isDoubtful && later.isEnding)
        var silent = openLife { $0.watchdog = .seconds(15) }
        silent.handOver(at: at(1000))
        _ = silent.tick(at: at(16_000), tolerating: .seconds(75))
        #expect(silent.isDoubtful && !silent.isEnding)
    }

    @Test func `a peer that has closed gets little time`() {
        var life = openLife { $0.farewell = .milliseconds(250) }
        life.handOver(at: at(1000))
        life.peerClosed(at: at(2000))
        #expect(life.state == .draining(.peerClosed))
        let early = life.tick(at: at(2249))
        let late = life.tick(at: at(2250))
        #expect(early == .none)
        #expect(late == .drop(.silent))
    }

    @Test func `an old connection finishes its open requests and is dropped`() {
        var life = openLife { $0.maximumAge = .seconds(100) }
        life.handOver(at: at(99_000))
        let draining = life.tick(at: at(100_000))
        #expect(draining == .none)
        #expect(life.state == .draining(.aged))
        life.finish(.accepted, at: at(100_500))
        let done = life.tick(at: at(100_501))
        #expect(done == .close)
    }

    @Test func `the first cause of a retirement is kept`() {
        var life = openLife()
        life.retire(.aged)
        life.retire(.idle)
        #expect(life.state == .draining(.aged))
    }

    @Test func `a draining connection takes no requests`() async {
        await #expect(processExitsWith: .failure) {
            var life = ConnectionLife(bornAt: at(0), bounds: ConnectionBounds())
            life.retire(.aged)
            life.handOver(at: at(1))
        }
    }
}

extension ConnectionLife {
    /// Ticks as for a gateway that is known to be slow.
    mutating func tick(at now: MonotonicInstant) -> TickAction {
        tick(at: now, tolerating: .seconds(75))
    }
}
