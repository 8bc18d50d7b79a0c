import RelayModel
import Storage

/// Inboxes, couriers and sessions of users, for support.
struct NotificationAdministration: AdministrationTable {
    let registry: any ContainerRegistry & InboxRegistry & CourierQueue & SessionRegistry
    /// Called with users whose sessions are no longer valid.
    let revoked: @Sendable (Revocation) async -> Void

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listNotifications, respond: notifications),
            AdministrationRoute(.listCouriers, respond: couriers),
            AdministrationRoute(.listSessions, respond: sessions),
            AdministrationRoute(.revokeSessions, respond: revoke),
        ]
    }

    /// Lists a user's notifications in the order of their last update, after the parameter `after`.
    private func notifications(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let owner = InboxOwner(container: settings.key, user: try request.identifier("user"))
        var wanted = InboxRequest(owner: owner, limit: try request.limit())
        wanted.after = try request.number("after") ?? 0
        let reading = try await registry.notifications(wanted)
        guard case .page(let notifications, let next, let isComplete) = reading else {
            throw APIError(.badRequest, "after: notifications after this place are no longer kept")
        }
        return AdministrationCall.listNotifications.answer(
            notifications.map(AdministrationRows.notification.json),
            next: isComplete ? nil : ("after", .string(String(next))),
            besides: ["keepsInbox": .bool(settings.keepsInbox)])
    }

    /// Lists the container's couriers by serial, with the number of notifications that wait for
    /// each.
    private func couriers(_ request: RelayRequest) async throws -> RelayAnswer {
        let couriers = try await registry.couriers(
            of: try await registry.key(in: request), limit: try request.limit())
        return AdministrationCall.listCouriers.answer(
            couriers.map(AdministrationRows.courier.json))
    }

    private func sessions(_ request: RelayRequest) async throws -> RelayAnswer {
        let sessions = try await registry.sessions(
            of: try await registry.key(in: request), user: try request.parameter("user"),
            at: request.receivedAt, limit: try request.limit())
        return AdministrationCall.listSessions.answer(
            sessions.map(AdministrationRows.session.json))
    }

    /// Ends every session of a user.
    ///
    /// The identity provider's tokens with which these sessions began are no longer valid either.
    private func revoke(_ request: RelayRequest) async throws -> RelayAnswer {
        let user: UserID = try request.identifier("user")
        let container = try await registry.key(in: request)
        let count = try await registry.revokeSessions(
            of: InboxOwner(container: container, user: user), at: request.receivedAt)
        await revoked(.sessions(user, container))
        return RelayAnswer(json: [
            "userRecordName": .string(user.rawValue), "revoked": .integer(Int64(count)),
        ])
    }
}
