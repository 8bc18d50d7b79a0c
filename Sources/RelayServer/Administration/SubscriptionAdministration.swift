import RelayModel
import Storage

/// Subscriptions and devices, for whoever has to help a user: list, delete.
struct SubscriptionAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SubscriptionRegistry & DeviceRegistry & DeliveryRegistry

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listSubscriptions, respond: list),
            AdministrationRoute(.deleteSubscription, respond: delete),
            AdministrationRoute(.listDevices, respond: devices),
            AdministrationRoute(.forgetDevice, respond: forget),
        ]
    }

    /// Subscriptions of the container by serial, after the parameter `after`, at most `limit`;
    /// with `user` those of one user.
    ///
    /// Those that were disabled stand among the others, with why.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let user: UserID? = try request.parameter("user")
        let after = try request.number("after") ?? 0
        let bounds = PageBounds(rows: try request.limit())
        let active = try await registry.subscriptionPage(
            of: container, user: user, after: after, bounds)
        let disabled = try await registry.disabledPage(
            of: container, user: user, after: after, bounds)
        let held = try await held(of: Set(active.elements.map(\.subscription.owner)), in: container)
        let page = Self.merged(
            active.map { version in
                var json = Self.json(version, version.json)
                json["held"] = held.deliveries(of: version).map { .integer(Int64($0)) }
                return (version.serial, json)
            },
            disabled.map { ($0.version.serial, Self.json($0.version, $0.json)) },
            rows: bounds.rows)
        return AdministrationCall.listSubscriptions.answer(
            page.elements.map { AdministrationRows.subscription.json($0.json) },
            next: page.hasMore ? page.elements.last.map { Self.goingOn(after: $0.serial) } : nil)
    }

    /// Pairs of a subscription and a device that are looked at for each user.
    private static let mostHeld = 1000

    /// What is held back for each of these users.
    private func held(
        of users: Set<UserID>, in container: ContainerKey
    ) async throws -> HeldOverview {
        var overview = HeldOverview()
        for user in users {
            overview.counts[user] = try await registry.held(
                of: user, in: container, limit: Self.mostHeld)
        }
        return overview
    }

    /// A line of the list.
    private typealias Line = (serial: UInt64, json: JSONObject)

    /// Two lists by serial as one, as far as both are known.
    private static func merged(
        _ first: Page<Line>, _ second: Page<Line>, rows: Int
    ) -> Page<Line> {
        let ends = [first, second].filter(\.hasMore).compactMap { $0.elements.last?.serial }
        let end = ends.min() ?? .max
        let lines = (first.elements + second.elements).sorted { $0.serial < $1.serial }
        let known = lines.prefix { $0.serial <= end }
        return Page(Array(known.prefix(rows)), hasMore: known.count > rows || !ends.isEmpty)
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let owner = SubscriptionOwner(
            container: try await registry.key(in: request),
            database: try request.choice("database"),
            user: try request.identifier("user"))
        let id: SubscriptionID = try request.identifier("subscription")
        let outcomes = try await registry.edit(
            [.delete(id)], of: owner, atomicity: .independent, at: request.receivedAt)
        guard case .deleted? = outcomes.first else {
            throw APIError(.notFound, "there is no subscription \"\(id)\" of \"\(owner.user)\"")
        }
        return RelayAnswer(json: ["subscriptionID": .string(id.rawValue), "deleted": true])
    }

    private func devices(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let page = try await registry.devicePage(
            of: container, owner: try request.parameter("user"),
            after: try request.number("after") ?? 0, PageBounds(rows: try request.limit()))
        let held = try await held(of: Set(page.elements.map(\.device.owner)), in: container)
        return AdministrationCall.listDevices.answer(
            page.elements.map {
                AdministrationRows.device.json(($0, held.deliveries(of: $0.device)))
            },
            next: page.hasMore ? page.elements.last.map { Self.goingOn(after: $0.serial) } : nil)
    }

    private func forget(_ request: RelayRequest) async throws -> RelayAnswer {
        let id: DeviceID = try request.identifier("device")
        let container = try await registry.key(in: request)
        let user = try await holder(of: id, in: container, stated: try request.parameter("user"))
        guard
            let user,
            try await registry.forgetDevice(
                id, of: user, in: container, at: request.receivedAt)
        else { throw APIError(.notFound, "there is no device \"\(id)\"") }
        return RelayAnswer(json: [
            "deviceID": .string(id.rawValue), "userRecordName": .string(user.rawValue),
            "deleted": true,
        ])
    }

    /// Whose device is meant: a name is its user's, and several users may have the same one.
    private func holder(
        of id: DeviceID, in container: ContainerKey, stated: UserID?
    ) async throws -> UserID? {
        if let stated { return stated }
        let holders = try await registry.holders(of: id, in: container, limit: 2)
        guard holders.count < 2 else {
            throw APIError(
                .badRequest, "user: several users have a device \"\(id)\"; say whose is meant")
        }
        return holders.first
    }

    private static func json(_ version: SubscriptionVersion, _ shown: JSONObject) -> JSONObject {
        var object = shown
        object["serial"] = .string(String(version.serial))
        object["database"] = .string(version.subscription.database.rawValue)
        object["userRecordName"] = .string(version.subscription.owner.rawValue)
        return object
    }

    /// Where the next page goes on.
    private static func goingOn(after serial: UInt64) -> (name: String, value: JSONValue) {
        ("after", .string(String(serial)))
    }
}

/// What is held back for some users.
struct HeldOverview {
    /// By user.
    var counts: [UserID: [HeldCount]] = [:]

    /// Of what a subscription owes; `nil` if nothing is.
    func deliveries(of version: SubscriptionVersion) -> Int? {
        let subscription = version.subscription
        let all = counts[subscription.owner, default: []].filter {
            $0.subscription == subscription.id && $0.database == subscription.database
        }
        return all.isEmpty ? nil : all.reduce(0) { $0 + $1.deliveries }
    }

    /// Of what is owed to a device.
    func deliveries(of device: Device) -> Int {
        counts[device.owner, default: []].reduce(0) {
            $0 + ($1.device == device.id ? $1.deliveries : 0)
        }
    }
}
