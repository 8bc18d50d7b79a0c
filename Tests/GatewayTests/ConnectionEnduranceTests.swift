import Testing

@testable import Gateway

@Suite struct ConnectionEnduranceTests {
    private typealias End = ConnectionEndurance.End

    /// Feeds a sequence of connections, each of which lives `seconds` and ends after a number of
    /// requests.
    private func learn(
        _ served: [Int], seconds: UInt64 = 1, into endurance: inout ConnectionEndurance,
        from start: UInt64 = 0
    ) {
        for (index, count) in served.enumerated() {
            let birth = start + UInt64(index) * seconds * 1000
            let end = at(birth + seconds * 1000)
            endurance.note(End(served: count, bornAt: at(birth), endedAt: end), at: end)
        }
    }

    @Test
    func `two connections with the same number of requests give that number, less a sixteenth`() {
        var endurance = ConnectionEndurance()
        learn([1000], into: &endurance)
        #expect(endurance.allowance(at: at(1000)) == nil)
        learn([1010], into: &endurance, from: 1000)
        #expect(endurance.allowance(at: at(2000)) == 938)
    }

    @Test func `connections with different numbers of requests give none`() {
        var endurance = ConnectionEndurance()
        learn([1000, 300, 9000, 100, 2500], into: &endurance)
        #expect(endurance.allowance(at: at(5000)) == nil)
        learn([2400], into: &endurance, from: 5000)
        #expect(endurance.allowance(at: at(6000)) == 2250)
    }

    @Test func `connections that end together in a restart give no number`() {
        var endurance = ConnectionEndurance()
        for _ in 1...4 {
            endurance.note(End(served: 5000, bornAt: at(0), endedAt: at(9000)), at: at(9000))
        }
        #expect(endurance.allowance(at: at(9000)) == nil)
    }

    @Test func `of overlapping connections, the first of the next generation counts`() {
        var endurance = ConnectionEndurance()
        for place in 0..<4 as Range<UInt64> {
            let end = End(served: 1000, bornAt: at(0), endedAt: at(1000 + place))
            endurance.note(end, at: end.endedAt)
        }
        endurance.note(End(served: 1000, bornAt: at(1000), endedAt: at(2000)), at: at(2000))
        #expect(endurance.allowance(at: at(2000)) == 938)
    }

    @Test func `short and long lives give no number`() {
        var endurance = ConnectionEndurance()
        learn([63, 63, 63], into: &endurance)
        learn([1000, 1000, 1000], seconds: 601, into: &endurance, from: 10_000)
        #expect(endurance == ConnectionEndurance())
    }

    @Test func `an end is forgotten if no other one confirms it`() {
        var endurance = ConnectionEndurance()
        learn([1000], into: &endurance)
        learn([1000], into: &endurance, from: 602_000)
        #expect(endurance.allowance(at: at(603_000)) == nil)
        learn([1000], into: &endurance, from: 603_000)
        #expect(endurance.allowance(at: at(604_000)) == 938)
    }

    @Test func `a connection serves at least the minimum of requests before it is replaced`() {
        var endurance = ConnectionEndurance()
        learn([64, 64], into: &endurance)
        #expect(endurance.allowance(at: at(2000)) == ConnectionEndurance.least)
    }

    @Test func `the number is put to a trial again, later each time that it holds`() {
        var endurance = ConnectionEndurance()
        learn([1000, 1000], into: &endurance)
        var now: UInt64 = 2000
        for belief in [60, 120, 240, 480, 960, 1920, 3600, 3600] as [UInt64] {
            #expect(endurance.allowance(at: at(now + belief * 1000 - 1)) == 938)
            now += belief * 1000
            #expect(endurance.allowance(at: at(now)) == nil, "the trial after \(belief) s")
            learn([1000], into: &endurance, from: now)
            now += 1000
            #expect(endurance.allowance(at: at(now)) == 938)
        }
    }

    @Test func `a long successful trial removes the number`() {
        var endurance = ConnectionEndurance()
        learn([1000, 1000], into: &endurance)
        learn([1000], into: &endurance, from: 700_000)
        #expect(endurance.allowance(at: at(701_000)) == nil)
    }

    @Test func `a trial that shows another number needs a confirmation`() {
        var endurance = ConnectionEndurance()
        learn([1000, 1000], into: &endurance)
        learn([5000], into: &endurance, from: 62_000)
        #expect(endurance.allowance(at: at(63_000)) == nil)
        learn([5000], into: &endurance, from: 63_000)
        #expect(endurance.allowance(at: at(64_000)) == 4688)
        #expect(endurance.allowance(at: at(124_000)) == nil, "the belief begins anew")
    }

    @Test func `an end before its time lowers the number`() {
        var endurance = ConnectionEndurance()
        learn([1000, 1000, 800], into: &endurance)
        #expect(endurance.allowance(at: at(3000)) == 750)
    }

    @Test func `a single early end that differs much changes nothing`() {
        var endurance = ConnectionEndurance()
        learn([1000, 1000, 100], into: &endurance)
        #expect(endurance.allowance(at: at(3000)) == 938)
    }

    @Test func `the next connection is opened when the current one has served half`() {
        func wants(_ remaining: [Int]) -> Bool {
            ConnectionEndurance.wantsSuccessor(remaining: remaining, allowance: 900)
        }
        #expect(!wants([]), "the first one is opened anyway")
        #expect(!wants([900]))
        #expect(!wants([450]))
        #expect(wants([449]))
        #expect(!wants([10, 900]), "it is there already")
        #expect(wants([10, 100, 600]))
        #expect(!wants([.max, 0]), "one without a limit counts as a whole one")
    }
}

@Suite struct SpentConnectionTests {
    private func openLife(allowance: Int?) -> ConnectionLife {
        var life = ConnectionLife(
            bornAt: at(0), bounds: ConnectionBounds(), allowance: allowance)
        life.handOver(at: at(0))
        life.establish(at: at(10))
        life.finish(.accepted, at: at(20))
        return life
    }

    @Test func `a connection is replaced after its last request, and open requests finish`() {
        var life = openLife(allowance: 4)
        #expect(life.vacancies(width: 100) == 3)
        for _ in 1...3 { life.handOver(at: at(30)) }
        #expect(life.state == .draining(.spent))
        #expect(life.vacancies(width: 100) == 0)
        for _ in 1...2 { life.finish(.accepted, at: at(40)) }
        let waits = life.tick(at: at(41), tolerating: .seconds(15))
        life.finish(.accepted, at: at(42))
        let closes = life.tick(at: at(43), tolerating: .seconds(15))
        #expect([waits, closes] == [.none, .close])
        let isBlamed = life.blame()
        #expect(!isBlamed)
        #expect(life.gatewaysEnd == nil, "the relay left, not the gateway")
    }

    @Test func `a number that is learned late retires connections beyond it`() {
        var life = openLife(allowance: nil)
        life.handOver(at: at(30))
        life.allow(3)
        #expect(life.state == .open)
        #expect(life.remaining == 1)
        life.allow(2)
        #expect(life.state == .draining(.spent))
    }

    @Test func `an end while requests are open is reported with the number served`() {
        var life = openLife(allowance: nil)
        for _ in 1...3 { life.handOver(at: at(30)) }
        life.closing(at: at(40))
        life.finish(.accepted, at: at(50))
        life.finish(.broke(.closing), at: at(60))
        life.finish(.broke(.broken), at: at(70))
        life.peerClosed(at: at(80))
        #expect(
            life.gatewaysEnd
                == ConnectionEndurance.End(served: 2, bornAt: at(0), endedAt: at(40)))
    }

    @Test func `an end after long silence, or without an accepted push, is not counted`() {
        var idle = openLife(allowance: nil)
        idle.peerClosed(at: at(60_000))
        #expect(idle.gatewaysEnd == nil)
        var refused = ConnectionLife(bornAt: at(0), bounds: ConnectionBounds())
        refused.handOver(at: at(0))
        refused.establish(at: at(10))
        refused.finish(.refused(.keep), at: at(20))
        refused.peerClosed(at: at(30))
        #expect(refused.gatewaysEnd == nil)
    }

    @Test func `an end after the relay has retired the connection is not counted`() {
        var life = openLife(allowance: nil)
        life.handOver(at: at(30))
        life.retire(.spent)
        life.peerClosed(at: at(40))
        #expect(life.gatewaysEnd == nil)
    }
}
