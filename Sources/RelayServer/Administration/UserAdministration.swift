import RelayModel
import Storage

/// The call that lists the users of a container.
struct UserAdministration: AdministrationTable {
    let registry: any ContainerRegistry

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.listUsers, respond: list)]
    }

    /// Lists users by name, after the parameter `after`, at most `limit`; with `prefix`, only those
    /// whose names begin with it.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let page = try await registry.userPage(
            of: try await registry.key(in: request), after: try request.parameter("after"),
            prefix: String((request.query["prefix"] ?? "").prefix(255)),
            PageBounds(rows: try request.limit()))
        return AdministrationCall.listUsers.answer(
            page.elements.map(AdministrationRows.user.json),
            next: page.hasMore
                ? page.elements.last.map { ("after", .string($0.user.rawValue)) } : nil)
    }
}

extension AdministrationRows {
    /// A user with the number of their devices and subscriptions.
    static let user = AdministrationRow<UserOverview>(
        [
            .always("userRecordName", .text) { .string($0.user.rawValue) },
            .always("devices", .integer) { .integer(Int64($0.devices)) },
            .always("subscriptions", .integer) { .integer(Int64($0.subscriptions)) },
        ],
        columns: [
            .init("user", "userRecordName"), .init("devices", "devices"),
            .init("subscriptions", "subscriptions"),
        ])
}
