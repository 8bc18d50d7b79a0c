import RelayModel
import Storage

/// What one connection proves for its device: that it was told of changes, and lived after that.
///
/// A ping that is sent behind what tells of a change is answered by nobody who has not read that
/// (RFC 6455 sends frames in order). A value but for whom it reports to.
struct LiveProof {
    private let place: LivePresence.Place
    private let number: UInt64
    private let presence: LivePresence
    private var told = ToldPositions()
    /// Deliveries whose changes have not been told yet, and may be, the oldest first.
    private var untold: [LivePresence.Question] = []
    /// Those that were told, by the ping whose answer proves it.
    private var unproven: [(ping: UInt64, delivery: DeliveryID)] = []
    private var pings: UInt64 = 0

    /// Nothing is told yet over the connection of this number.
    init(of place: LivePresence.Place, _ number: UInt64, to presence: LivePresence) {
        self.place = place
        self.number = number
        self.presence = presence
    }

    /// Is asked about deliveries, after the connection was told everything up to their changes,
    /// except for what comes from the inbox.
    ///
    /// - Returns: What is to be pinged with, if there is something to prove.
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
        // Nobody waits for what is older: so many wait at a time.
        untold.removeFirst(max(0, untold.count - LivePresence.mostForDevice))
        return ping(for: proven)
    }

    /// Notes changes that the connection is told of now.
    ///
    /// - Returns: What is to be pinged with, behind them, if there is something to prove.
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

    /// Takes the answer to a ping: what was told before that one was heard.
    mutating func take(pong bytes: [UInt8]) {
        guard bytes.count == 8, !unproven.isEmpty else { return }
        let answered = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard answered <= pings else { return }
        let heard = unproven.prefix { $0.ping <= answered }.map(\.delivery)
        unproven.removeFirst(heard.count)
        if !heard.isEmpty { presence.see(heard) }
    }

    /// The connection has gone, or goes.
    func end() {
        presence.leave(place, number)
    }
}

extension LivePresence.Place {
    /// Whose connection it is by what it has proven; `nil` if it is no device's.
    ///
    /// A server speaks for users, and is none of their devices.
    init?(_ identity: LiveIdentity) {
        guard !identity.isServer, let device = identity.device else { return nil }
        self.init(identity.settings.key, identity.user, device)
    }
}
