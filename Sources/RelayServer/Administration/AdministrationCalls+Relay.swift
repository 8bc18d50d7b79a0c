import RelayModel
import Storage

//  The calls about the relay as a whole.

extension AdministrationCall {
    package static let overview = AdministrationCall(
        "GET", "/admin/1/overview",
        "Show where the log and the progress are, what waits, and counts by container.",
        list: List(
            member: "containers",
            columns: [
                .init("container", "container"), .init("environment", "environment"),
                .init("devices", "devices"), .init("parked", "parked"),
                .init("retries", "retries"), .init("dead letters", "deadLetters"),
                .init("webhooks", "webhooks.accepted"), .init("refused", "webhooks.refused"),
                .init("last refused", "webhooks.lastRefused"),
                .init("can send", "canSend"), .init("last answer", "gateway.last.reason"),
                .init("answered", "gateway.last.at"), .init("can sign in", "canSignIn"),
            ]))

    package static let listShards = AdministrationCall(
        listing: "shards", AdministrationRows.shard, at: "/admin/1/shards",
        "List the shards of the service, each a store, as the relay that you ask knows them.")

    // MARK: Tokens of the surface

    package static let listTokens = AdministrationCall(
        listing: "tokens", AdministrationRows.adminToken, at: "/admin/1/tokens",
        "List the tokens of the administrative surface beside the one in the configuration.")

    package static let createToken = AdministrationCall(
        "POST", "/admin/1/tokens", "Create a token that may do less; its secret is shown once.",
        body: .members(
            [
                .always("label", .name), .always("access", .words(of: AdminToken.Access.self)),
                .maybe("container", .name),
                .maybe("environment", .words(of: ContainerEnvironment.self)),
                .maybe("hours", .number(from: 1, to: 876_000)),
            ], example: ["label": "dashboard", "access": "read"]),
        answers: [
            Answer(201, AdministrationRows.adminToken.form.and([.always("secret", .text)]))
        ])

    package static let revokeToken = AdministrationCall(
        "DELETE", "/admin/1/tokens/{token}", "Revoke a token.",
        answers: [Answer(200, .members([.always("id", .text), .always("revoked", .yes)]))])

    package static let audit = AdministrationCall(
        listing: "entries", AdministrationRows.auditEntry, at: "/admin/1/audit",
        "List administrative calls that changed something or were refused, the newest first.",
        query: [.maybe("before", .count), .limit], next: .maybe("before", .integer))

    package static let secrets = AdministrationCall(
        "GET", "/admin/1/secrets",
        "Show whether the secrets in the store are encrypted, and the ID of the key.",
        answers: [
            Answer(200, .members([.always("encrypted", .flag), .maybe("keyID", .text)]))
        ])

    // MARK: The running process

    package static let showLogging = AdministrationCall(
        "GET", "/admin/1/log", "Show the lowest level that is logged.", answers: [logging])

    package static let setLogging = AdministrationCall(
        "PATCH", "/admin/1/log",
        "Set the lowest level that is logged, for some minutes or until the relay ends; null goes "
            + "back to the level of the configuration.",
        body: .members(
            [
                .always("level", .words(LogLevels.words).orNull()),
                .maybe("minutes", .number(from: 1, to: 10_080)),
            ], example: ["level": "debug", "minutes": 10]),
        answers: [logging])

    private static let logging = Answer(
        200,
        .members([
            .always("level", .words(LogLevels.words)),
            .always("configured", .words(LogLevels.words)), .maybe("until", .text),
        ]))

    package static let renewCertificates = AdministrationCall(
        "POST", "/admin/1/certificates/renew",
        "Read the files of the listeners' certificate again.",
        answers: [
            Answer(200, .members([.always("renewed", .flag)])),
            Answer(400, .component("Error"), "Unusable files; the old certificate stays in use."),
        ])

    // MARK: Deliveries

    package static let listDeliveries = AdministrationCall(
        listing: "deliveries", AdministrationRows.delivery, at: "/admin/1/deliveries",
        "List deliveries with their outcome, the newest first.",
        query: [
            .maybe("position", .count), .maybe("subscriptionSerial", .count),
            .maybe("deviceSerial", .count), .maybe("state", .words(of: DeliveryStanding.self)),
        ] + ofContainer + [.before, .limit], next: .before)

    /// The parameters that filter by name; they need the container, because names are unique only
    /// within one.
    private static let ofContainer: [JSONForm.Member] = [
        .maybe("container", .name), .maybe("environment", .words(of: ContainerEnvironment.self)),
        .user, .subscription, .device, .recordType, .record,
    ]

    package static let showDelivery = AdministrationCall(
        "GET", "/admin/1/deliveries/{delivery}", "Show a delivery with all its attempts.",
        answers: [oneDelivery],
        list: List(member: "receipts", columns: AdministrationRows.attemptColumns))

    package static let showContainerDelivery = AdministrationCall(
        "GET", "\(container)/deliveries/{delivery}",
        "Show a container's delivery with all its attempts.", answers: [oneDelivery],
        list: List(member: "receipts", columns: AdministrationRows.attemptColumns))

    private static let oneDelivery = Answer(
        200,
        AdministrationRows.delivery.form.and([
            .always("receipts", .list(of: AdministrationRows.receipt.form)),
            .maybe("retry", AdministrationRows.retry.form),
            .maybe("deadLetter", AdministrationRows.deadLetter.form),
        ]))

    package static let listReceipts = AdministrationCall(
        listing: "receipts", AdministrationRows.receipt, at: "/admin/1/receipts",
        "List attempts, the newest first.",
        query: [
            .maybe("deliveryID", .text), .maybe("position", .count),
            .maybe("subscriptionSerial", .count), .maybe("deviceSerial", .count),
            .maybe("outcome", .text),
        ] + ofContainer + [.before, .limit], next: .before)
}
