import Fanout
import RelayModel

extension Explanation {
    /// The place in a list: fired ones first, then near misses before others.
    var rank: Int {
        switch verdict {
        case .fired: 0
        case .cannotTell: 1
        case .didNotFire: 2 + (missedBy ?? 1000)
        }
    }

    /// Returns the explanation reduced to the device of one delivery; `nil` if the delivery is not
    /// part of it.
    func narrowed(to delivery: DeliveryID) -> Explanation? {
        guard let device = devices.first(where: { $0.deliveryID == delivery }) else { return nil }
        var explanation = self
        explanation.devices = [device]
        explanation.sentence = "Fired. \(device.id): \(device.sentence)"
        return explanation
    }
}
