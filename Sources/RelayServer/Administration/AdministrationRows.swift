import Delivery
import RelayModel
import Storage

/// The rows of administrative answers.
enum AdministrationRows {
    static let container = AdministrationRow<ContainerSettings>(
        .object,
        columns: [
            .init("container", "container"), .init("environment", "environment"),
            .init("topics", "topics"), .init("APNs key", "apns.keyID"),
            .init("user claim", "userTokens.userClaim"),
        ]
    ) { $0.shown }

    /// An access key without its verifier; a public key is shown.
    static let accessKey = AdministrationRow<AccessKey>(
        [
            .always("id", .text) { .string($0.id) },
            .always("kind", .words(of: AccessKey.Kind.self)) { .string($0.kind.rawValue) },
            .always("label", .text) { .string($0.label) },
            .always("createdAt", .text) { .string($0.createdAt.iso8601) },
            .maybe("revokedAt", .text) { $0.revokedAt.map { .string($0.iso8601) } },
            .maybe("publicKey", .text) {
                $0.kind == .serverToServer ? .string($0.verifier) : nil
            },
        ],
        columns: [
            .init("ID", "id"), .init("kind", "kind"), .init("label", "label"),
            .init("created", "createdAt"), .init("revoked", "revokedAt"),
        ])

    /// An administrative token without its verifier.
    static let adminToken = AdministrationRow<AdminToken>(
        [
            .always("id", .text) { .string($0.id) },
            .always("label", .text) { .string($0.label) },
            .always("access", .words(of: AdminToken.Access.self)) {
                .string(($0.mayChange ? AdminToken.Access.change : .read).rawValue)
            },
            .always("createdAt", .text) { .string($0.createdAt.iso8601) },
            .maybe("container", .text) { $0.container.map { .string($0.container.rawValue) } },
            .maybe("environment", .text) { $0.container.map { .string($0.environment.rawValue) } },
            .maybe("endsAt", .text) { $0.endsAt.map { .string($0.iso8601) } },
            .maybe("revokedAt", .text) { $0.revokedAt.map { .string($0.iso8601) } },
        ],
        columns: [
            .init("ID", "id"), .init("label", "label"), .init("access", "access"),
            .init("container", "container"), .init("environment", "environment"),
            .init("created", "createdAt"), .init("ends", "endsAt"), .init("revoked", "revokedAt"),
        ])

    static let auditEntry = AdministrationRow<AuditEntry>(
        [
            .always("id", .integer) { .integer($0.id) },
            .always("at", .text) { .string($0.at.iso8601) },
            .always("caller", .text) { .string($0.caller) },
            .always("method", .text) { .string($0.method) },
            .always("path", .text) { .string($0.path) },
            .maybe("status", .integer) { $0.status.map { .integer(Int64($0)) } },
            .maybe("code", .text) { $0.code.map { .string($0) } },
        ],
        columns: [
            .init("number", "id"), .init("at", "at"), .init("caller", "caller"),
            .init("method", "method"), .init("path", "path"), .init("status", "status"),
            .init("code", "code"),
        ])

    /// A change source: its definition, and the URL to post to.
    static let source = AdministrationRow<JSONObject>(
        .object,
        columns: [
            .init("name", "name"), .init("preset", "preset"),
            .init("verification", "verification.scheme"), .init("unmappable", "onUnmappable"),
            .init("following", "following.state"),
            .init("accepted", "webhooks.accepted"), .init("refused", "webhooks.refused"),
            .init("ignored", "webhooks.ignored"),
            .init("last accepted", "webhooks.lastAccepted"),
            .init("last refused", "webhooks.lastRefused"), .init("post to", "url"),
        ]
    ) { $0 }

    /// A webhook that was refused.
    static let refusal = AdministrationRow<SourceLedger.Refusal>(
        [
            .always("at", .text) { .string($0.at.iso8601) },
            .always("source", .text) { .string($0.source.rawValue) },
            .maybe("address", .text) { $0.address.map { .string($0) } },
            .always("status", .integer) { .integer(Int64($0.status)) },
            .always("reason", .text) { .string($0.reason) },
            .always("requestID", .text) { .string($0.requestID) },
        ],
        columns: [
            .init("at", "at"), .init("source", "source"), .init("address", "address"),
            .init("status", "status"), .init("reason", "reason"), .init("request", "requestID"),
        ])

    /// A subscription as its owner sees it, together with the owner.
    static let subscription = AdministrationRow<JSONObject>(
        .component("SavedSubscription").and([
            .always("serial", .text), .always("database", .text),
            .always("userRecordName", .text),
        ]),
        columns: [
            .init("serial", "serial"), .init("database", "database"),
            .init("user", "userRecordName"), .init("ID", "subscriptionID"),
            .init("type", "subscriptionType"), .init("record type", "query.recordType"),
            .init("fires on", "firesOn"), .init("predicate", "query.canonicalPredicate"),
            .init("fired", "health.fired"), .init("last fired", "health.lastFired.at"),
            .init("reached nobody", "health.unreached.count"),
            .init("errors", "health.errors.count"),
            .init("held", "held"), .init("disabled", "disabled.reason"),
        ]
    ) { $0 }

    /// A device with its token hidden.
    static let device = AdministrationRow<(version: DeviceVersion, held: Int)>(
        [
            .always("deviceID", .text) { .string($0.version.device.id.rawValue) },
            .always("userRecordName", .text) { .string($0.version.device.owner.rawValue) },
            .always("gateway", .text) { .string($0.version.device.gateway.rawValue) },
            .always("apnsEnvironment", .words(of: GatewayEnvironment.self)) {
                .string($0.version.device.gatewayEnvironment.rawValue)
            },
            .always("apnsToken", .text) { .string($0.version.device.token.description) },
            .always("registeredAt", .text) { .string($0.version.registeredAt.iso8601) },
            .always("activationPosition", .text) { .string($0.version.activation.description) },
            .always("serial", .text) { .string(String($0.version.serial)) },
            .maybe("topic", .text) { $0.version.device.topic.map { .string($0) } },
            .maybe("quietHours", .object) { $0.version.device.kindness.quietHours?.json },
            .maybe("unlessConnected", .flag) {
                $0.version.device.kindness.isUnlessConnected ? true : nil
            },
            .maybe("held", .integer) { $0.held == 0 ? nil : .integer(Int64($0.held)) },
        ],
        columns: [
            .init("serial", "serial"), .init("user", "userRecordName"),
            .init("device", "deviceID"), .init("gateway", "apnsEnvironment"),
            .init("token", "apnsToken"), .init("topic", "topic"),
            .init("registered", "registeredAt"), .init("held", "held"),
        ])

    /// A change of the log; edits of subscriptions and devices have lists of their own.
    static let change = AdministrationRow<
        (
            position: LogPosition, appendedAt: Timestamp, source: SourceName, change: RecordChange,
            isStale: Bool
        )
    >(
        [
            .always("position", .text) { .string($0.position.description) },
            .always("appendedAt", .text) { .string($0.appendedAt.iso8601) },
            .always("source", .text) { .string($0.source.rawValue) },
            .always("change", .object) { .object($0.change.storedForm) },
            .maybe("stale", .flag) { $0.isStale ? true : nil },
        ],
        columns: [
            .init("position", "position"), .init("source", "source"),
            .init("operation", "change.op"), .init("record type", "change.type"),
            .init("record", "change.name"), .init("appended", "appendedAt"),
            .init("stale", "stale"),
        ])

    static let parked = AdministrationRow<ParkedChange>(
        [
            .always("number", .integer) { .integer(Int64(clamping: $0.number)) },
            .always("source", .text) { .string($0.source.rawValue) },
            .always("reason", .text) { .string($0.reason) },
            .always("path", .text) { .string($0.path) },
            .always("receivedAt", .text) { .string($0.receivedAt.iso8601) },
            .always("body", JSONForm([:])) {
                (try? JSONValue(stored: $0.body))
                    ?? .string(String(decoding: $0.body, as: UTF8.self))
            },
        ],
        columns: [
            .init("number", "number"), .init("source", "source"),
            .init("received", "receivedAt"), .init("at", "path"), .init("reason", "reason"),
        ])

    static let courier = AdministrationRow<CourierOverview>(
        [
            .always("serial", .text) { .string(String($0.device.serial)) },
            .always("userRecordName", .text) { .string($0.device.device.owner.rawValue) },
            .always("deviceID", .text) { .string($0.device.device.id.rawValue) },
            .always("apnsEnvironment", .words(of: GatewayEnvironment.self)) {
                .string($0.device.device.gatewayEnvironment.rawValue)
            },
            .always("apnsToken", .text) { .string($0.device.device.token.description) },
            .always("waiting", .integer) { .integer(Int64($0.waiting)) },
            .always("polledAt", .text) { .string($0.polledAt.iso8601) },
        ],
        columns: [
            .init("serial", "serial"), .init("user", "userRecordName"),
            .init("device", "deviceID"), .init("token", "apnsToken"),
            .init("waiting", "waiting"), .init("polled", "polledAt"),
        ])

    static let session = AdministrationRow<UserSession>(
        [
            .always("userRecordName", .text) { .string($0.user.rawValue) },
            .always("session", .text) { .string($0.id.description) },
            .always("startedAt", .text) { .string($0.startedAt.iso8601) },
            .always("endsAt", .text) { .string($0.endsAt.iso8601) },
            .maybe("revokedAt", .text) { $0.revokedAt.map { .string($0.iso8601) } },
        ],
        columns: [
            .init("user", "userRecordName"), .init("session", "session"),
            .init("started", "startedAt"), .init("ends", "endsAt"),
            .init("revoked", "revokedAt"),
        ])

    /// A notification as its user sees it, together with its position in the inbox.
    static let notification = AdministrationRow<StoredNotification>(
        .object,
        columns: [
            .init("sequence", "sequence"), .init("notification", "notificationID"),
            .init("subscription", "subscriptionID"), .init("database", "database"),
            .init("type", "notificationType"), .init("position", "position"),
            .init("created", "createdAt"), .init("read", "readAt"),
        ]
    ) { notification in
        guard case .object(var object) = notification.json else { return [:] }
        object["sequence"] = .string(String(notification.sequence))
        object["position"] = .string(notification.position.description)
        object["createdAt"] = .string(notification.createdAt.iso8601)
        object["readAt"] = notification.readAt.map { .string($0.iso8601) }
        return object
    }
}
