import RelayModel

/// The active subscriptions of a container, by serial, with what the fan-out needs of them.
///
/// Their conditions are not here, but in the index.
///
/// The format of a record is
/// ```
/// | serial 8 | template 4 | cost 4 | condition 8 | memory 4 | owner's length 2 | ID's length 2 |
/// | owner | ID |
/// ```
/// where the template is the subscription without its ID, its owner and its condition.
struct PackedSubscriptions: Sendable {
    private var records: PackedRecords<Subscription>

    private enum Offset {
        static let template = 8
        static let cost = 12
        static let condition = 16
        static let memory = 24
        static let ownerLength = 28
        static let idLength = 30
        static let owner = 32
    }

    /// Creates the subscriptions of a container that has none.
    init(container: ContainerKey) {
        records = PackedRecords(
            templates: TemplateTable(
                write: { JSONValue.object($0.templateForm).text },
                read: { try Subscription(templateForm: try JSONValue(stored: $0), of: container) }),
            templateOffset: Offset.template)
    }

    /// The number of subscriptions.
    var count: Int { records.count }

    /// The number of subscriptions that fire once.
    private(set) var onceCount = 0
    /// The number of subscriptions with silent pushes.
    private(set) var silentCount = 0
    /// The number of subscriptions that expire.
    private(set) var expiringCount = 0

    private mutating func count(_ subscription: Subscription, by difference: Int) {
        if subscription.firesOnce { onceCount += difference }
        if !subscription.notificationInfo.isVisible { silentCount += difference }
        if subscription.kindness.expiresAt != nil { expiringCount += difference }
    }

    /// Adds a subscription, whose serial must be new.
    mutating func insert(_ subscription: Subscription, serial: UInt64, weight: ConditionWeight) {
        var record = ImageWriter()
        record.append(serial)
        record.append(records.number(of: subscription.template))
        record.append(weight.cost.bitPattern)
        record.append(weight.condition)
        record.append(weight.memory)
        let (owner, id) = (subscription.owner.rawValue.utf8, subscription.id.rawValue.utf8)
        record.append(UInt16(owner.count))
        record.append(UInt16(id.count))
        record.append(raw: owner)
        record.append(raw: id)
        _ = records.append(record, serial: serial)
        count(subscription, by: 1)
    }

    /// Returns the subscription with this serial, without its condition.
    mutating func subscription(_ serial: UInt64) -> Subscription? {
        guard let place = records.places[serial],
            var subscription = records.template(at: place),
            let owner = UserID(rawValue: owner(at: place))
        else { return nil }
        let ownerLength = Int(records.heap.word(Offset.ownerLength, of: place) as UInt16)
        let idLength = Int(records.heap.word(Offset.idLength, of: place) as UInt16)
        let name = records.text(Offset.owner + ownerLength, idLength, of: place)
        guard let id = SubscriptionID(rawValue: name) else { return nil }
        subscription.id = id
        subscription.owner = owner
        return subscription
    }

    /// Returns the owner of the subscription with this serial, or `nil` if there is none.
    func owner(of serial: UInt64) -> String? { records.places[serial].map(owner(at:)) }

    private func owner(at place: Int) -> String {
        records.text(
            Offset.owner, Int(records.heap.word(Offset.ownerLength, of: place) as UInt16),
            of: place)
    }

    /// Returns whether there is a subscription with this serial.
    func contains(_ serial: UInt64) -> Bool { records.places[serial] != nil }

    /// Returns the weight of the condition of the subscription with this serial.
    func weight(_ serial: UInt64) -> ConditionWeight? {
        records.places[serial].map(weight(at:))
    }

    private func weight(at place: Int) -> ConditionWeight {
        ConditionWeight(
            cost: Float(bitPattern: records.heap.word(Offset.cost, of: place)),
            condition: records.heap.word(Offset.condition, of: place),
            memory: records.heap.word(Offset.memory, of: place))
    }

    /// The serials of the subscriptions whose conditions have a noticeable weight.
    var weighty: [UInt64] {
        var serials: [UInt64] = []
        records.heap.forEach { place, _ in
            if weight(at: place).isNoticeable { serials.append(records.heap.word(0, of: place)) }
        }
        return serials
    }

    /// Removes a subscription.
    mutating func remove(_ serial: UInt64) {
        guard let place = records.places[serial] else { return }
        if let subscription = records.template(at: place) { count(subscription, by: -1) }
        _ = records.remove(serial)
    }

    // MARK: Snapshots

    /// The subscriptions as bytes for a snapshot.
    var image: [UInt8] { records.image([onceCount, silentCount, expiringCount]) }

    /// Loads the subscriptions from a snapshot.
    ///
    /// - Throws: `ImageDamage` if the bytes are not those of ``image``.
    init(container: ContainerKey, image bytes: [UInt8]) throws {
        self.init(container: container)
        let numbers = try records.load(bytes, numbers: 3, of: "subscriptions") {
            heap, place, length in
            length >= Offset.owner
                && length == Offset.owner + Int(heap.word(Offset.ownerLength, of: place) as UInt16)
                    + Int(heap.word(Offset.idLength, of: place) as UInt16)
        }
        (onceCount, silentCount, expiringCount) = (numbers[0], numbers[1], numbers[2])
    }
}

extension Subscription {
    /// What the subscription has in common with others: everything but the ID, the owner and the
    /// condition.
    var template: Subscription {
        var template = self
        template.id = Self.templateID
        template.owner = Self.templateOwner
        if case .query(let query, let zoneID) = scope {
            template.scope = .query(
                SubscriptionQuery(
                    recordType: query.recordType, form: nil, source: .null, canonical: ""),
                zoneID: zoneID)
        }
        return template
    }

    private static let templateID = constant("template", SubscriptionID.init(rawValue:))
    private static let templateOwner = constant("template", UserID.init(rawValue:))

    private static func constant<Name>(_ text: String, _ make: (String) -> Name?) -> Name {
        guard let name = make(text) else { preconditionFailure("\(text) must be a name") }
        return name
    }

    /// The form of a template in a snapshot.
    var templateForm: JSONObject {
        var form = json
        form["database"] = .string(database.rawValue)
        return form
    }

    /// Reads a template from its form.
    ///
    /// - Throws: `JSONContractError` if it is not one of ``templateForm``.
    init(templateForm json: JSONValue, of container: ContainerKey) throws {
        let reader = try JSONReader(json)
        let database: DatabaseScope = try reader.require(
            "database", try reader.choice("database"))
        var subscription = reader.object
        subscription["database"] = nil
        try self.init(
            json: .object(subscription), path: "", assignedID: Self.templateID,
            owner: Self.templateOwner, container: container, database: database)
        self = template
    }
}
