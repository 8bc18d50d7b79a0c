import Delivery
import Fanout
import RelayModel
import Storage

/// Reads what became of what one change owes by one subscription.
struct DeviceReading: Sendable {
    let reading: ExplainReading
    let change: PastChange
    let judged: Explainer.Judged

    private var registry: any ExplainService.Past { reading.service.registry }

    /// What is known of one device.
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
        }
        var filter = ReceiptFilter()
        filter.position = change.position
        filter.deliveryID = id
        facts.receipts = try await registry.receipts(matching: filter, limit: 100)
        if facts.receipts.isEmpty {
            facts.isInRanges = try await registry.isInRanges(change.position)
        }
        if device.gateway == .courier { facts.courier = try await registry.courierFate(of: id) }
        if reading.settings.keepsInbox {
            facts.inbox = try await registry.inboxFate(
                of: change.position, owed.subscriptionSerial,
                InboxOwner(container: reading.container, user: device.owner))
        }
        return facts
    }
}
