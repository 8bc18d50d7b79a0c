package import RelayModel

extension LogEntryBody {
    /// The numbers by which engines keep the kinds.
    package enum Kind: Int64 {
        case change = 1
        case subscriptionSaved = 2
        case subscriptionDeleted = 3
        case deviceSaved = 4
        case devicesEnded = 5
    }

    /// The kind.
    package var kind: Kind {
        switch self {
        case .change: .change
        case .subscriptionSaved: .subscriptionSaved
        case .subscriptionDeleted: .subscriptionDeleted
        case .deviceSaved: .deviceSaved
        case .devicesEnded: .devicesEnded
        }
    }

    /// The source of a change.
    package var source: SourceName? {
        if case .change(_, let source, _) = self { source } else { nil }
    }

    /// The record of a change.
    package var record: (type: RecordType, name: RecordName)? {
        guard case .change(let change, _, _) = self else { return nil }
        return (change.recordType, change.recordID.recordName)
    }

    /// Whether it is a change that came too late.
    package var isStale: Bool {
        if case .change(_, _, let isStale) = self { isStale } else { false }
    }

    /// The JSON text that is kept of an entry: self-contained, so that it can be read after the
    /// version that it speaks of is gone.
    ///
    /// - Throws: `JSONContractError` if it could not be read again.
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

    /// Reads what ``storedBody()`` wrote of an edit.
    ///
    /// - Throws: `JSONContractError`.
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
    /// The version as a log entry holds it.
    package var storedForm: JSONObject {
        [
            "serial": .integer(serial.stored), "activation": .integer(activation.stored),
            "owner": .string(subscription.owner.rawValue),
            "database": .string(subscription.database.rawValue),
            "subscription": .object(subscription.storedForm),
        ]
    }

    /// Reads what ``storedForm`` wrote.
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
    /// The version as a log entry holds it, token included.
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

    /// Reads what ``storedForm`` wrote.
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
    /// The serial `name`.
    func serial(_ name: String) throws -> UInt64 {
        UInt64(clamping: try require(name, try integer(name)))
    }

    /// The serials `name`; none if it is absent.
    func serials(_ name: String) throws -> [UInt64] {
        try (try array(name) ?? []).map { element in
            guard case .integer(let number) = element else {
                throw failure(name, "a list of serials is expected")
            }
            return UInt64(clamping: number)
        }
    }
}
