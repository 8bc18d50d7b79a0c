package import RelayModel

extension LogEntryBody {
    /// The numbers under which engines store the kinds of entries.
    package enum Kind: Int64 {
        case change = 1
        case subscriptionSaved = 2
        case subscriptionDeleted = 3
        case deviceSaved = 4
        case devicesEnded = 5
    }

    /// The kind of the entry.
    package var kind: Kind {
        switch self {
        case .change: .change
        case .subscriptionSaved: .subscriptionSaved
        case .subscriptionDeleted: .subscriptionDeleted
        case .deviceSaved: .deviceSaved
        case .devicesEnded: .devicesEnded
        }
    }

    /// The source of a change; `nil` for an edit.
    package var source: SourceName? {
        if case .change(_, let source, _) = self { source } else { nil }
    }

    /// The type and name of the changed record; `nil` for an edit.
    package var record: (type: RecordType, name: RecordName)? {
        guard case .change(let change, _, _) = self else { return nil }
        return (change.recordType, change.recordID.recordName)
    }

    /// Whether the entry is a stale change.
    package var isStale: Bool {
        if case .change(_, _, let isStale) = self { isStale } else { false }
    }

    /// Returns the JSON text that is stored for the entry.
    ///
    /// The text is self-contained, so that it can be read even after the version it describes is
    /// deleted.
    ///
    /// - Throws: `JSONContractError` if the text could not be read back.
    package func storedBody() throws(JSONContractError) -> String {
        switch self {
        case .change(let change, _, _): return try change.storedText()
        case .subscriptionSaved(let version, let replaced):
            return try Self.text(version.storedForm, replaced.map { .integer($0.stored) })
        case .subscriptionDeleted(let serial):
            return try JSONValue.object(["serial": .integer(serial.stored)]).storedText()
        case .deviceSaved(let version, let replaced):
            return try Self.text(version.storedForm, Self.list(replaced))
        case .devicesEnded(let serials):
            return try JSONValue.object(["serials": Self.list(serials)]).storedText()
        }
    }

    private static func text(
        _ form: JSONObject, _ replaced: JSONValue?
    ) throws(JSONContractError) -> String {
        var form = form
        form["replaced"] = replaced
        return try JSONValue.object(form).storedText()
    }

    private static func list(_ serials: [UInt64]) -> JSONValue {
        .array(serials.map { .integer($0.stored) })
    }

    /// Creates an edit from what ``storedBody()`` wrote.
    ///
    /// - Throws: `JSONContractError` if a member does not fit.
    package init(edit kind: Kind, storedForm json: JSONValue, container: ContainerKey) throws {
        let reader = try JSONReader(json)
        switch kind {
        case .change, .subscriptionSaved:
            self = .subscriptionSaved(
                try SubscriptionVersion(storedForm: reader, container: container),
                replaced: try reader.integer("replaced").map { UInt64(clamping: $0) })
        case .subscriptionDeleted:
            self = .subscriptionDeleted(serial: try reader.serial("serial"))
        case .deviceSaved:
            self = .deviceSaved(
                try DeviceVersion(storedForm: reader, container: container),
                replaced: try reader.serials("replaced"))
        case .devicesEnded:
            self = .devicesEnded(serials: try reader.serials("serials"))
        }
    }
}

extension SubscriptionVersion {
    /// The version in the form in which a log entry holds it.
    package var storedForm: JSONObject {
        [
            "serial": .integer(serial.stored), "activation": .integer(activation.stored),
            "owner": .string(subscription.owner.rawValue),
            "database": .string(subscription.database.rawValue),
            "subscription": .object(subscription.storedForm),
        ]
    }

    /// Creates a version from its ``storedForm``.
    ///
    /// - Throws: `JSONContractError` at the first member that does not fit.
    package init(storedForm reader: JSONReader, container: ContainerKey) throws {
        let owner = SubscriptionOwner(
            container: container,
            database: try reader.require("database", try reader.choice("database")),
            user: try reader.require("owner", try reader.identifier("owner")))
        self.init(
            serial: try reader.serial("serial"),
            subscription: try Subscription(
                stored: try reader.require("subscription", reader.value("subscription")),
                of: owner),
            activation: LogPosition(try reader.serial("activation")))
    }
}

extension DeviceVersion {
    /// The version in the form in which a log entry holds it, including the device token.
    package var storedForm: JSONObject {
        var form: JSONObject = [
            "serial": .integer(serial.stored), "activation": .integer(activation.stored),
            "registeredAt": .integer(registeredAt.stored),
            "device": .string(device.id.rawValue), "owner": .string(device.owner.rawValue),
            "gateway": .string(device.gateway.rawValue),
            "gatewayEnvironment": .string(device.gatewayEnvironment.rawValue),
            "token": .string(device.token.rawValue),
        ]
        form["topic"] = device.topic.map { .string($0) }
        form["kindness"] = device.kindness.storedForm.map { .object($0) }
        form["badge"] = badge.map { .integer($0) }
        return form
    }

    /// Creates a version from its ``storedForm``.
    ///
    /// - Throws: `JSONContractError` at the first member that does not fit.
    package init(storedForm reader: JSONReader, container: ContainerKey) throws {
        var device = Device(
            id: try reader.require("device", try reader.identifier("device")),
            container: container,
            owner: try reader.require("owner", try reader.identifier("owner")),
            gatewayEnvironment: try reader.require(
                "gatewayEnvironment", try reader.choice("gatewayEnvironment")),
            token: try reader.require("token", try reader.identifier("token")),
            topic: try reader.string("topic"))
        device.gateway = try reader.require("gateway", try reader.choice("gateway"))
        if let kindness = reader.value("kindness") {
            device.kindness = try DeviceKindness(storedForm: kindness)
        }
        self.init(
            serial: try reader.serial("serial"), device: device,
            registeredAt: Timestamp(
                stored: try reader.require("registeredAt", try reader.integer("registeredAt"))),
            activation: LogPosition(try reader.serial("activation")))
        badge = try reader.integer("badge")
    }
}

extension JSONReader {
    /// Returns the serial in the member `name`, which is required.
    func serial(_ name: String) throws -> UInt64 {
        UInt64(clamping: try require(name, try integer(name)))
    }

    /// Returns the serials in the member `name`, or none if it is absent.
    func serials(_ name: String) throws -> [UInt64] {
        try (try array(name) ?? []).map { element in
            guard case .integer(let number) = element else {
                throw failure(name, "a list of serials is expected")
            }
            return UInt64(clamping: number)
        }
    }
}
