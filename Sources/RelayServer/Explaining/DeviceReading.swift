import Delivery
import Fanout
import RelayModel
import Storage

/// Reads what became of the deliveries that one change owes because of one subscription.
struct DeviceReading: Sendable {
    private let reading: ExplainReading
    private let change: PastChange
    private let judged: Explainer.Judged
    /// The attempts of all these deliveries.
    private let receipts: [DeliveryID: [DeliveryReceipt]]
    /// What the user's clients reported about the change's notifications.
    private let said: [ClientReceipt]
    /// Whether some of what the change owes has not been worked yet.
    private let isInRanges: Bool

    /// The maximum number of receipts that are read.
    private static let mostReceipts = 10_000

    /// Reads what the deliveries have in common.
    init(
        _ reading: ExplainReading, _ change: PastChange, _ judged: Explainer.Judged
    ) async throws {
        self.reading = reading
        self.change = change
        self.judged = judged
        var filter = ReceiptFilter()
        filter.position = change.position
        filter.subscriptionSerial = judged.subscription?.version.serial
        let registry = reading.service.registry
        let receipts = try await registry.receipts(matching: filter, limit: Self.mostReceipts)
        self.receipts = Dictionary(grouping: receipts, by: \.deliveryID)
        isInRanges = try await registry.isInRanges(change.position)
        var said: [ClientReceipt] = []
        if let owner = judged.subscription?.version.subscription.owner {
            said = try await registry.clientReceipts(
                of: InboxOwner(container: reading.container, user: owner),
                at: [change.position])
        }
        self.said = said
    }

    private var registry: any ExplainService.Past { reading.service.registry }

    /// Returns what is known about one device.
    func facts(of device: PastDevice) async throws -> DeviceFacts {
        var facts = DeviceFacts()
        if let ended = device.ended, !device.hears(change.position) {
            facts.ending = try await registry.ending(ofDevice: device.serial, at: ended)
        }
        guard let owed = judged.owed[device.serial] else { return facts }
        let id = owed.delivery.id
        facts.exception = try await registry.exception(id)
        if case .retry(let retry)? = facts.exception {
            let waiting = WaitingRetry(
                retry, among: reading.service.halts(), at: reading.now)
            facts.waitsFor = waiting.reason
            facts.waitsUntil = waiting.until
            facts.halted = waiting.halt?.scope.halted
        }
        facts.receipts = receipts[id] ?? []
        let newest = facts.receipts.max { $0.at < $1.at }
        if facts.exception == nil, let newest, newest.isHeld {
            try await readDigests(of: owed.delivery, heldAt: newest.at, &facts)
        } else if facts.exception == nil,
            let held = facts.receipts.filter(\.isHeld).max(by: { $0.at < $1.at })
        {
            facts.sent = try await sent(owed, heldAt: held.at)
        }
        facts.isInRanges = isInRanges
        facts.client = said.merged(of: change.position, owed.subscriptionSerial, to: device.id)
        if facts.client == nil { try await readClientOfTeller(of: owed, to: device, &facts) }
        if device.gateway == .courier { facts.courier = try await registry.courierFate(of: id) }
        if reading.settings.keepsInbox {
            facts.inbox = try await registry.inboxFate(
                of: change.position, owed.subscriptionSerial,
                InboxOwner(container: reading.container, user: device.owner))
        }
        return facts
    }

    /// Returns a delivery in the form in which it was sent after a hold, if it stood for several.
    private func sent(
        _ owed: OwedDelivery, heldAt moment: Timestamp
    ) async throws -> OwedDelivery? {
        let fate = try await registry.digestFate(of: owed.delivery, heldAt: moment)
        guard case .closed(let at, let count, let id, _)? = fate, id == owed.delivery.id, count > 1
        else { return nil }
        return Digest(id: 0, deliveries: count, count: count, openedAt: at, newest: owed).delivery
    }

    /// The maximum length of a chain of digests.
    private static let mostDigests = 100

    /// Finds the push that told of a held delivery.
    ///
    /// If the push of a digest was held again, it became part of the next digest; the last one of
    /// this chain counts.
    private func readDigests(
        of delivery: Delivery, heldAt moment: Timestamp, _ facts: inout DeviceFacts
    ) async throws {
        facts.digest = try await registry.digestFate(of: delivery, heldAt: moment)
        facts.isPutOff = isPutOff(facts.digest, heldAt: moment)
        for _ in 0..<Self.mostDigests {
            guard case .closed(_, _, let teller, let position)? = facts.digest,
                try !reading.isOver()
            else { return }
            var filter = ReceiptFilter()
            filter.position = position
            filter.deliveryID = teller
            facts.tellerException = try await registry.exception(teller)
            facts.tellerReceipt = try await registry.receipts(
                matching: filter, limit: Self.mostReceipts
            ).max { $0.at < $1.at }
            guard facts.tellerException == nil, let last = facts.tellerReceipt, last.isHeld,
                let next = try await registry.digestFate(of: delivery, heldAt: last.at),
                next != facts.digest
            else { return }
            facts.digest = next
            facts.isPutOff = isPutOff(next, heldAt: last.at)
        }
    }

    /// Reads what clients reported about the push that told of a delivery together with others.
    private func readClientOfTeller(
        of owed: OwedDelivery, to device: PastDevice, _ facts: inout DeviceFacts
    ) async throws {
        guard case .closed(_, _, let teller, let position)? = facts.digest,
            teller != owed.delivery.id
        else { return }
        let user = InboxOwner(container: reading.container, user: device.owner)
        let serial = facts.tellerReceipt?.subscriptionSerial ?? owed.subscriptionSerial
        facts.client = try await registry.clientReceipts(of: user, at: [position])
            .merged(of: position, serial, to: device.id)
        facts.isClientOfTeller = facts.client != nil
    }

    /// Returns whether a digest waits longer than its span, which only quiet hours cause.
    private func isPutOff(_ fate: DigestFate?, heldAt moment: Timestamp) -> Bool {
        guard case .open(let until, _, .digest?)? = fate,
            let digest = judged.subscription?.version.subscription.kindness.digest
        else { return false }
        // The first delivery waits for the whole span, and later ones for less. The extra second
        // covers rounding of the clock.
        return until > moment.advanced(by: .seconds(digest.seconds + 1))
    }
}

private extension OutcomeJudge.Halt.Scope {
    /// The halt as part of a sentence.
    var halted: String {
        switch self {
        case .container(let environment):
            "the container's credential (\(environment.rawValue)) is halted"
        case .gateway(let environment): "the gateway (\(environment.rawValue)) is halted"
        case .topic(let topic, let environment):
            "the topic \(topic) (\(environment.rawValue)) is halted"
        }
    }
}
