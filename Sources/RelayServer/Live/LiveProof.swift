import RelayModel
import Storage

/// The proof that one connection gives for its device: it was sent changes, and was alive after
/// that.
///
/// RFC 6455 delivers frames in order, so a client that answers a ping has read the frames before
/// it. This is a value, except that it reports to `presence`.
struct LiveProof {
    private let place: LivePresence.Place
    private let number: UInt64
    private let presence: LivePresence
    private var told = ToldPositions()
    /// The deliveries whose changes may yet be sent, the oldest first.
    private var untold: [LivePresence.Question] = []
    /// The deliveries whose changes were sent, by the ping whose answer proves it.
    private var unproven: [(ping: UInt64, delivery: DeliveryID)] = []
    private var pings: UInt64 = 0

    /// Creates the proof of a connection that has been sent nothing yet.
    init(of place: LivePresence.Place, _ number: UInt64, to presence: LivePresence) {
        self.place = place
        self.number = number
        self.presence = presence
    }

    /// Asks for proof of deliveries, after the connection was sent everything up to their changes,
    /// except from the inbox.
    ///
    /// - Returns: The payload of a ping, if there is something to prove.
    mutating func ask(
        _ questions: [LivePresence.Question], isTellingInbox: Bool
    ) -> [UInt8]? {
        var proven: [DeliveryID] = []
        var hopeless: [DeliveryID] = []
        for question in questions {
            if told.contains(question.position) {
                proven.append(question.delivery)
            } else if isTellingInbox {
                untold.append(question)
            } else {
                hopeless.append(question.delivery)
            }
        }
        if !hopeless.isEmpty { presence.giveUp(hopeless, on: number) }
        // Only so many deliveries wait at a time, so older ones have ended.
        untold.removeFirst(max(0, untold.count - LivePresence.mostForDevice))
        return ping(for: proven)
    }

    /// Notes changes that the connection is being sent.
    ///
    /// - Returns: The payload of a ping to send behind them, if there is something to prove.
    mutating func note(told positions: [LogPosition]) -> [UInt8]? {
        for position in positions { told.note(position) }
        guard !untold.isEmpty else { return nil }
        let now = untold.filter { positions.contains($0.position) }
        if !now.isEmpty { untold.removeAll { positions.contains($0.position) } }
        return ping(for: now.map(\.delivery))
    }

    private mutating func ping(for deliveries: [DeliveryID]) -> [UInt8]? {
        guard !deliveries.isEmpty else { return nil }
        pings += 1
        unproven += deliveries.map { (pings, $0) }
        unproven.removeFirst(max(0, unproven.count - LivePresence.mostForDevice))
        return (0..<8).map { UInt8(truncatingIfNeeded: pings >> (56 - 8 * UInt64($0))) }
    }

    /// Takes the answer to a ping, which proves what was sent before that ping.
    mutating func take(pong bytes: [UInt8]) {
        guard bytes.count == 8, !unproven.isEmpty else { return }
        let answered = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard answered <= pings else { return }
        let heard = unproven.prefix { $0.ping <= answered }.map(\.delivery)
        unproven.removeFirst(heard.count)
        if !heard.isEmpty { presence.see(heard) }
    }

    /// Ends the proof, because the connection goes or has gone.
    func end() {
        presence.leave(place, number)
    }
}

extension LivePresence.Place {
    /// Creates the place of a connection; `nil` if it belongs to no device.
    ///
    /// A server acts for users, but is no device of theirs.
    init?(_ identity: LiveIdentity) {
        guard !identity.isServer, let device = identity.device else { return nil }
        self.init(identity.settings.key, identity.user, device)
    }
}
