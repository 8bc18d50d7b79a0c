import Gateway
import RelayModel
import Testing

extension PushRequest {
    /// Returns a request with readable defaults.
    static func sample(
        ticket: UInt64 = 1, container: String = "iCloud.com.example.Art",
        environment: GatewayEnvironment = .production, token: String? = nil,
        pushType: PushType = .alert, priority: Int? = nil, topic: String = "com.example.Art",
        collapseID: String? = nil, expiration: Timestamp? = nil, payload: String = #"{"aps":{}}"#
    ) throws -> PushRequest {
        let digits = String(ticket, radix: 16)
        let padded = String(repeating: "0", count: 64 - digits.count) + digits
        return PushRequest(
            ticket: ticket,
            deliveryID: DeliveryID(UUIDBytes(high: 0x0123_4567_89AB_4DEF, low: ticket)),
            container: ContainerKey(
                container: try #require(ContainerID(rawValue: container)),
                environment: .production),
            environment: environment,
            token: try #require(DeviceToken(rawValue: token ?? padded)),
            notification: PushNotification(
                pushType: pushType, priority: priority ?? (pushType == .alert ? 10 : 5),
                topic: topic, collapseID: collapseID, expiration: expiration,
                payload: Array(payload.utf8)))
    }
}
