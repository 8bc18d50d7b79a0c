import Fanout
import RelayModel
import RelayTestKit
import Storage

/// Composes what one device gets, with defaults for everything that a test does not state.
struct Composition {
    var subscription = Fixtures.subscription("s1")
    var change = Fixtures.change()
    var badge: Int64?
    var topic: String?
    var position: UInt64 = 7

    static let settings = ContainerSettings(
        key: Fixtures.container, topics: ["com.example.Art", "com.example.Art.watch"])
    static let notificationID = UUIDBytes(high: 1, low: 2)

    init(_ fill: (inout NotificationInfo) -> Void = { _ in }) {
        fill(&subscription.notificationInfo)
    }

    var push: PushNotification {
        NotificationComposer(
            settings: Self.settings, change: change, position: LogPosition(position),
            appendedAt: Fixtures.moment
        ).notification(
            by: subscription, notificationID: Self.notificationID, topic: topic, badge: badge)
    }

    var text: String { String(decoding: push.payload, as: UTF8.self) }

    /// The payload as a JSON object.
    var payload: JSONObject { get throws { try object(JSONValue(parsing: push.payload)) } }

    /// The member `aps` of the payload.
    var aps: JSONValue? { get throws { try payload["aps"] } }
}

/// Returns the members of a JSON object, or no members for any other value.
func object(_ value: JSONValue?) -> JSONObject {
    if case .object(let object)? = value { object } else { JSONObject() }
}

/// Returns a version of a device of alice.
func version(_ serial: UInt64, _ name: String, of owner: String = "alice") -> DeviceVersion {
    DeviceVersion(
        serial: serial, device: Fixtures.device(name, of: owner, token: Int(serial)),
        registeredAt: Fixtures.moment, activation: LogPosition(serial))
}
