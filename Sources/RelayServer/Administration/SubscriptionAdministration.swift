import RelayModel
import Storage

/// Subscriptions and devices, for support: list, delete.
struct SubscriptionAdministration: AdministrationTable {
    let registry:
        any ContainerRegistry & SubscriptionRegistry & DeviceRegistry & ListRegistry
            & DeliveryRegistry
    /// The reader of the subscriptions' health.
    let health: HealthReading

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listSubscriptions, respond: list),
            AdministrationRoute(.deleteSubscription, respond: delete),
            AdministrationRoute(.listDevices, respond: devices),
            AdministrationRoute(.forgetDevice, respond: forget),
        ]
    }

    /// Lists subscriptions of the container, the newest first, at most `limit`; with `after`, by
    /// ascending serial.
    ///
    /// Disabled subscriptions are in the same list, with the reason.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let before = try request.numberBefore()
        guard request.query["after"] != nil else {
            return try await listNewest(request, before: before)
        }
        return try await listAscending(request)
    }

    private func listNewest(
        _ request: RelayRequest, before: UInt64?
    ) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        var filter = SubscriptionListFilter()
        filter.user = try request.parameter("user")
        filter.recordType = try request.parameter("recordType")
        let state = try request.word("state", of: SubscriptionState.self)
        let bounds = PageBounds(rows: try request.limit())
        var lines: [Line] = []
        var ends: [UInt64] = []
        if state != .disabled {
            let page = try await registry.listedSubscriptions(
                of: container, filter, before: before, bounds)
            lines += page.elements.map { ($0, Self.json($0, $0.json)) }
            ends += page.next.map { [$0] } ?? []
        }
        if state != .active {
            let page = try await registry.listedDisabled(
                of: container, filter, before: before, bounds)
            lines += page.elements.map { ($0.version, Self.json($0.version, $0.json)) }
            ends += page.next.map { [$0] } ?? []
        }
        // Both lists are complete down to this serial; rows below it wait for the next page.
        let end = ends.max() ?? 0
        let known = lines.filter { $0.version.serial >= end }
            .sorted { $0.version.serial > $1.version.serial }
        let shown = known.prefix(bounds.rows)
        let next = shown.count < known.count ? shown.last?.version.serial : ends.max()
        return AdministrationCall.listSubscriptions.answer(
            try await rows(of: shown, in: container),
            next: next.map { ("before", .string(String($0))) })
    }

    private func listAscending(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let user: UserID? = try request.parameter("user")
        let after = try request.number("after") ?? 0
        let bounds = PageBounds(rows: try request.limit())
        let active = try await registry.subscriptionPage(
            of: container, user: user, after: after, bounds)
        let disabled = try await registry.disabledPage(
            of: container, user: user, after: after, bounds)
        let page = Self.merged(
            active.map { ($0, Self.json($0, $0.json)) },
            disabled.map { ($0.version, Self.json($0.version, $0.json)) },
            rows: bounds.rows)
        return AdministrationCall.listSubscriptions.answer(
            try await rows(of: page.elements, in: container),
            next: page.hasMore
                ? page.elements.last.map { Self.goingOn(after: $0.version.serial) } : nil)
    }

    /// Returns the rows of the list, with the health of each subscription and the number of its
    /// held deliveries.
    private func rows(
        of lines: some Collection<Line>, in container: ContainerKey
    ) async throws -> [JSONObject] {
        let health = try await health.health(of: lines.map(\.version), in: container)
        let held = try await HeldOverview(
            of: Set(lines.map(\.version.subscription.owner)), in: container, registry)
        return lines.map { version, json in
            AdministrationRows.subscription.json(
                json.with(health[version.serial], held.deliveries(of: version)))
        }
    }

    /// A row of the list.
    private typealias Line = (version: SubscriptionVersion, json: JSONObject)

    /// Merges two pages by serial, as far as both of them reach.
    private static func merged(
        _ first: Page<Line>, _ second: Page<Line>, rows: Int
    ) -> Page<Line> {
        let ends = [first, second].filter(\.hasMore).compactMap {
            $0.elements.last?.version.serial
        }
        let end = ends.min() ?? .max
        let lines = (first.elements + second.elements).sorted {
            $0.version.serial < $1.version.serial
        }
        let known = lines.prefix { $0.version.serial <= end }
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
        let before = try request.numberBefore()
        guard request.query["after"] != nil else {
            var filter = DeviceListFilter()
            filter.user = try request.parameter("user")
            filter.device = try request.parameter("device")
            let page = try await registry.listedDevices(
                of: container, filter, before: before, PageBounds(rows: try request.limit()))
            return AdministrationCall.listDevices.answer(
                try await rows(of: page.elements, in: container),
                next: page.next.map { ("before", .string(String($0))) })
        }
        let page = try await registry.devicePage(
            of: container, owner: try request.parameter("user"),
            after: try request.number("after") ?? 0, PageBounds(rows: try request.limit()))
        return AdministrationCall.listDevices.answer(
            try await rows(of: page.elements, in: container),
            next: page.hasMore ? page.elements.last.map { Self.goingOn(after: $0.serial) } : nil)
    }

    /// Returns the rows of devices, with the number of deliveries that are held for each.
    private func rows(
        of versions: [DeviceVersion], in container: ContainerKey
    ) async throws -> [JSONObject] {
        let held = try await HeldOverview(
            of: Set(versions.map(\.device.owner)), in: container, registry)
        return versions.map {
            AdministrationRows.device.json(($0, held.deliveries(of: $0.device)))
        }
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

    /// Returns the user whose device is meant.
    ///
    /// A device's name is unique only for its user, and several users may have a device of the same
    /// name.
    private func holder(
        of id: DeviceID, in container: ContainerKey, stated: UserID?
    ) async throws -> UserID? {
        if let stated { return stated }
        let holders = try await registry.holders(of: id, in: container, limit: 2)
        guard holders.count < 2 else {
            throw APIError(
                .badRequest, "user: several users have a device \"\(id)\"; name the user")
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

    /// Returns the member of an answer that says where the next page begins.
    private static func goingOn(after serial: UInt64) -> (name: String, value: JSONValue) {
        ("after", .string(String(serial)))
    }
}
