/// The form in which a retry or dead letter stores a delivery: lossless JSON.
extension Delivery {
    /// The form in which the delivery is stored.
    ///
    /// It contains the device token.
    public var storedForm: JSONObject {
        var object: JSONObject = [
            "id": .string(id.description),
            "position": .string(ordinal.position.description),
            "offset": .integer(Int64(ordinal.offset)),
            "container": .string(container.container.rawValue),
            "environment": .string(container.environment.rawValue),
            "subscription": .string(subscriptionID.rawValue),
            "owner": .string(owner.rawValue),
            "device": .string(deviceID.rawValue),
            "gateway": .string(gateway.rawValue),
            "gatewayEnvironment": .string(gatewayEnvironment.rawValue),
            "token": .string(token.rawValue),
            "registeredAt": FieldValue.timestamp(registeredAt).notation,
            "appendedAt": FieldValue.timestamp(appendedAt).notation,
            "pushType": .string(notification.pushType.rawValue),
            "priority": .integer(Int64(notification.priority)),
            "topic": .string(notification.topic),
            "payload": .string(String(decoding: notification.payload, as: UTF8.self)),
        ]
        object["collapseID"] = notification.collapseID.map { .string($0) }
        object["expiration"] = notification.expiration.map { FieldValue.timestamp($0).notation }
        object["badge"] = badge.map { .integer($0) }
        object["collapsing"] = collapsingRecord.map {
            FieldValue.reference(RecordReference($0)).notation
        }
        object["once"] = isOnce.map { .bool($0) }
        object["database"] = database.map { .string($0.rawValue) }
        object["together"] = together.map { .string(String(decoding: $0, as: UTF8.self)) }
        object["standsFor"] = standsFor.map { .integer($0) }
        return object
    }

    /// Reads a delivery from the form in which it is stored.
    ///
    /// - Throws: ``JSONContractError`` if the form is not one that ``storedForm`` writes.
    public init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        let position = try reader.string("position").flatMap(UInt64.init)
        let device = try Device(stored: reader)
        self.init(
            id: DeliveryID(
                try reader.require("id", try reader.string("id").flatMap { UUIDBytes($0) })),
            ordinal: DeliveryOrdinal(
                position: LogPosition(try reader.require("position", position)),
                offset: UInt32(clamping: try reader.integer("offset") ?? 0)),
            container: device.container,
            subscriptionID: try reader.require(
                "subscription", try reader.identifier("subscription")),
            owner: device.owner, device: device,
            registeredAt: try reader.moment("registeredAt"),
            appendedAt: try reader.moment("appendedAt"),
            notification: try PushNotification(stored: reader),
            badge: try reader.integer("badge"))
        collapsingRecord = try reader.record("collapsing")
        isOnce = try reader.bool("once")
        database = try reader.choice("database")
        together = try reader.string("together").map { Array($0.utf8) }
        standsFor = try reader.integer("standsFor")
    }
}

extension Device {
    init(stored reader: JSONReader) throws(JSONContractError) {
        self.init(
            id: try reader.require("device", try reader.identifier("device")),
            container: ContainerKey(
                container: try reader.require("container", try reader.identifier("container")),
                environment: try reader.require("environment", try reader.choice("environment"))),
            owner: try reader.require("owner", try reader.identifier("owner")),
            gatewayEnvironment: try reader.require(
                "gatewayEnvironment", try reader.choice("gatewayEnvironment")),
            token: try reader.require("token", try reader.identifier("token")))
        gateway = try reader.require("gateway", try reader.choice("gateway"))
    }
}

extension PushNotification {
    init(stored reader: JSONReader) throws(JSONContractError) {
        self.init(
            pushType: try reader.require("pushType", try reader.choice("pushType")),
            priority: Int(try reader.require("priority", try reader.integer("priority"))),
            topic: try reader.require("topic", try reader.string("topic")),
            collapseID: try reader.string("collapseID"),
            expiration: reader.value("expiration") == nil ? nil : try reader.moment("expiration"),
            payload: Array(try reader.require("payload", try reader.string("payload")).utf8))
    }
}

extension JSONReader {
    func record(_ name: String) throws(JSONContractError) -> RecordID? {
        guard let json = value(name) else { return nil }
        guard case .reference(let reference) = try FieldValue(notation: json, path: path(of: name))
        else { throw failure(name, "not a reference") }
        return reference.recordID
    }

    func moment(_ name: String) throws(JSONContractError) -> Timestamp {
        let value = try FieldValue(notation: try require(name, value(name)), path: path(of: name))
        guard case .timestamp(let moment) = value else { throw failure(name, "not a moment") }
        return moment
    }
}
