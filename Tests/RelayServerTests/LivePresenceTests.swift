import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// What connections prove to have heard, and which deliveries wait for such a proof.
@Suite struct LivePresenceTests {
    private static func delivery(_ number: UInt64, device: String = "phone") -> Delivery {
        Fixtures.delivery(at: number, device: device).delivery
    }

    private static let place = LivePresence.Place(delivery(1))

    /// Connects, and records the questions that are asked.
    private static func enter(
        _ presence: LivePresence, _ number: UInt64 = 1
    ) -> Asked {
        let asked = Asked()
        presence.enter(place, number) { questions in asked.questions.withLock { $0 += questions } }
        return asked
    }

    // MARK: What is told

    @Test func `the last shown changes are remembered`() {
        var told = ToldPositions()
        for position in 1...40 { told.note(LogPosition(UInt64(position))) }
        #expect(!told.contains(LogPosition(8)) && told.contains(LogPosition(9)))
        #expect(told.contains(LogPosition(40)) && !told.contains(LogPosition(41)))
        // Once a question was asked, more positions are kept.
        for position in 41...1000 { told.note(LogPosition(UInt64(position))) }
        #expect(told.contains(LogPosition(41)) && told.contains(LogPosition(1000)))
        for position in 1001...3000 { told.note(LogPosition(UInt64(position))) }
        #expect(!told.contains(LogPosition(1000)) && told.contains(LogPosition(2999)))
    }

    // MARK: Waiting

    @Test func `a delivery only waits for the connections of its own device`() async {
        let presence = LivePresence()
        let now = Fixtures.moment
        #expect(!presence.awaitDevice(of: Self.delivery(1), at: now))
        let asked = Self.enter(presence)
        #expect(!presence.awaitDevice(of: Self.delivery(1, device: "tablet"), at: now))
        #expect(presence.awaitDevice(of: Self.delivery(1), at: now))
        #expect(!presence.awaitDevice(of: Self.delivery(1), at: now), "it waits already")
        presence.watch([Self.delivery(1), Self.delivery(2)])
        #expect(asked.questions.withLock { $0.map(\.position) } == [LogPosition(1)])
        presence.see([Self.delivery(1).id, Self.delivery(7).id])
        #expect(await presence.decided() == [Self.delivery(1).id])
        #expect(presence.endWait(for: Self.delivery(1).id))
        #expect(!presence.endWait(for: Self.delivery(1).id), "it is over")
    }

    @Test func `a device name in another spelling is another client`() {
        let places = ["zo\u{E9}", "zoe\u{301}"].map {
            LivePresence.Place(Self.delivery(1, device: $0))
        }
        #expect(places[0] != places[1])
        #expect(places[1] == LivePresence.Place(Self.delivery(2, device: "zoe\u{301}")))
        #expect(
            places[1]
                == LivePresence.Place(Self.delivery(2, device: "zoe\u{301}~token-0123abcd")))
    }

    @Test func `the wait ends when the last connection has gone or will not show the change`() async
    {
        let presence = LivePresence()
        let now = Fixtures.moment
        _ = Self.enter(presence, 1)
        _ = Self.enter(presence, 2)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(presence.awaitDevice(of: Self.delivery(number), at: now))
        }
        presence.watch([Self.delivery(1), Self.delivery(2)])
        presence.giveUp([Self.delivery(1).id], on: 1)
        presence.giveUp([Self.delivery(1).id], on: 1)
        presence.see([Self.delivery(2).id])
        #expect(await presence.decided() == [Self.delivery(2).id])
        presence.leave(Self.place, 2)
        #expect(await presence.decided() == [Self.delivery(1).id])
        #expect(!presence.endWait(for: Self.delivery(1).id))
        #expect(presence.endWait(for: Self.delivery(2).id))
        // The connection closed while the delivery was being stored.
        presence.leave(Self.place, 1)
        presence.watch([Self.delivery(3)])
        #expect(await presence.decided() == [Self.delivery(3).id])
        #expect(!presence.awaitDevice(of: Self.delivery(4), at: now))
    }

    @Test func `waiting deliveries of a device are bounded, and abandoned ones are forgotten`() {
        let presence = LivePresence()
        let now = Fixtures.moment
        _ = Self.enter(presence)
        let most = UInt64(LivePresence.mostForDevice)
        for number in 1...most {
            #expect(presence.awaitDevice(of: Self.delivery(number), at: now))
        }
        #expect(!presence.awaitDevice(of: Self.delivery(most + 1), at: now))
        let late = now.advanced(by: .seconds(61))
        #expect(presence.awaitDevice(of: Self.delivery(most + 1), at: late))
    }

    // MARK: Proof

    private static func question(_ number: UInt64) -> LivePresence.Question {
        LivePresence.Question(delivery: delivery(number).id, position: LogPosition(number))
    }

    private static func waiting(
        _ numbers: ClosedRange<UInt64>
    ) -> (presence: LivePresence, proof: LiveProof) {
        let presence = LivePresence()
        _ = enter(presence)
        for number in numbers {
            _ = presence.awaitDevice(of: delivery(number), at: Fixtures.moment)
        }
        presence.watch(numbers.map { delivery($0) })
        return (presence, LiveProof(of: place, 1, to: presence))
    }

    @Test func `a pong proves the changes that were sent before its ping`() async {
        var (presence, proof) = Self.waiting(1...3)
        #expect(proof.note(told: [LogPosition(1)]) == nil, "nobody asks")
        let first = proof.ask([Self.question(1)], isTellingInbox: false)
        #expect(first == [0, 0, 0, 0, 0, 0, 0, 1])
        _ = proof.note(told: [LogPosition(2)])
        let second = proof.ask([Self.question(2)], isTellingInbox: false)
        // The connection will not be told this change. A pong that answers no ping proves nothing.
        #expect(proof.ask([Self.question(3)], isTellingInbox: false) == nil)
        proof.take(pong: [])
        proof.take(pong: [0, 0, 0, 0, 0, 0, 0, 9])
        #expect(await presence.decided() == [Self.delivery(3).id])
        proof.take(pong: first ?? [])
        #expect(await presence.decided() == [Self.delivery(1).id])
        #expect(!presence.endWait(for: Self.delivery(2).id))
        proof.take(pong: second ?? [])
        proof.take(pong: second ?? [])
        #expect(presence.endWait(for: Self.delivery(1).id))
    }

    @Test func `a change from the inbox may be shown later`() async {
        var (presence, proof) = Self.waiting(1...2)
        let questions = [Self.question(1), Self.question(2)]
        #expect(proof.ask(questions, isTellingInbox: true) == nil)
        #expect(proof.note(told: [LogPosition(9)]) == nil)
        let ping = proof.note(told: [LogPosition(9), LogPosition(2)])
        proof.take(pong: ping ?? [])
        #expect(await presence.decided() == [Self.delivery(2).id])
        proof.end()
        #expect(await presence.decided() == [Self.delivery(1).id])
    }
}

/// The questions that a connection was asked.
private final class Asked: Sendable {
    let questions = Mutex<[LivePresence.Question]>([])
}
