import RelayModel
import Storage

/// Inboxes, couriers and sessions, for whoever has to help a user.
struct NotificationAdministration: AdministrationTable {
    let registry: any Registry

    var routes: [AdministrationRoute] {
        [
            route("GET", "/notifications/{user}", respond: notifications),
            route("GET", "/couriers", respond: couriers),
            route("GET", "/sessions", respond: sessions),
            route("DELETE", "/sessions/{user}", respond: revoke),
        ]
    }

    /// A user's notifications in the order in which something became of them, after the parameter
    /// `after`.
    private func notifications(_ request: RelayRequest) async throws -> RelayAnswer {
        let owner = InboxOwner(
            container: try await key(request), user: try request.identifier("user"))
        var wanted = InboxRequest(owner: owner, limit: try request.limit())
        wanted.after = try request.number("after") ?? 0
        let reading = try await registry.notifications(wanted)
        guard case .page(let notifications, let next, let isComplete) = reading else {
            throw APIError(.badRequest, "after: what came after it is no longer kept")
        }
        var answer: JSONObject = ["notifications": .array(notifications.map(Self.json))]
        if !isComplete { answer["after"] = .string(String(next)) }
        return RelayAnswer(json: .object(answer))
    }

    /// The couriers of the container by serial, with what waits for each.
    private func couriers(_ request: RelayRequest) async throws -> RelayAnswer {
        let couriers = try await registry.couriers(
            of: try await key(request), limit: try request.limit())
        return RelayAnswer(json: ["couriers": .array(couriers.map(Self.json))])
    }

    private func sessions(_ request: RelayRequest) async throws -> RelayAnswer {
        let sessions = try await registry.sessions(
            of: try await key(request), user: try request.parameter("user"),
            at: request.receivedAt, limit: try request.limit())
        return RelayAnswer(json: ["sessions": .array(sessions.map(Self.json))])
    }

    /// Ends every session of a user; identity providers' tokens from which one began do not count
    /// any more either.
    private func revoke(_ request: RelayRequest) async throws -> RelayAnswer {
        let user: UserID = try request.identifier("user")
        let count = try await registry.revokeSessions(
            of: InboxOwner(container: try await key(request), user: user), at: request.receivedAt)
        return RelayAnswer(json: [
            "userRecordName": .string(user.rawValue), "revoked": .integer(Int64(count)),
        ])
    }

    private static func json(_ notification: StoredNotification) -> JSONValue {
        guard case .object(var object) = notification.json else { return notification.json }
        object["sequence"] = .string(String(notification.sequence))
        object["position"] = .string(notification.position.description)
        object["createdAt"] = .string(notification.createdAt.iso8601)
        object["readAt"] = notification.readAt.map { .string($0.iso8601) }
        return .object(object)
    }

    private static func json(_ courier: CourierOverview) -> JSONValue {
        let device = courier.device.device
        return [
            "serial": .string(String(courier.device.serial)),
            "userRecordName": .string(device.owner.rawValue),
            "deviceID": .string(device.id.rawValue),
            "apnsEnvironment": .string(device.gatewayEnvironment.rawValue),
            "apnsToken": .string(device.token.description),
            "waiting": .integer(Int64(courier.waiting)),
            "polledAt": .string(courier.polledAt.iso8601),
        ]
    }

    private static func json(_ session: UserSession) -> JSONValue {
        var object: JSONObject = [
            "userRecordName": .string(session.user.rawValue),
            "session": .string(session.id.description),
            "startedAt": .string(session.startedAt.iso8601),
            "endsAt": .string(session.endsAt.iso8601),
        ]
        object["revokedAt"] = session.revokedAt.map { .string($0.iso8601) }
        return .object(object)
    }
}
