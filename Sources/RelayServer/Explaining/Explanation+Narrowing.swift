import Fanout
import RelayModel

extension Explanation {
    /// How far behind those that fired it stands in a list.
    var rank: Int {
        switch verdict {
        case .fired: 0
        case .cannotTell: 1
        case .didNotFire: 2 + (missedBy ?? 1000)
        }
    }

    /// The same about the device of one delivery; `nil` if that is none of its deliveries.
    func narrowed(to delivery: DeliveryID) -> Explanation? {
        guard let device = devices.first(where: { $0.deliveryID == delivery }) else { return nil }
        var explanation = self
        explanation.devices = [device]
        explanation.sentence = "Fired. \(device.id): \(device.sentence)"
        return explanation
    }
}
