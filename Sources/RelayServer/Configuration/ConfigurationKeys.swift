import RelayModel
import Storage

/// Every setting, in the order of the documentation (`docs/configuration.md`).
package enum ConfigurationKeys {
    /// The settings.
    package static let all =
        listeners + doors + storage + upkeep + gateway + fetching + operation + limits + queries
        + quotas

    private static let listeners = [
        ConfigurationKey(
            "http.host", .text, default: "127.0.0.1", "The address on which clients are served."),
        ConfigurationKey(
            "http.port", .integer(0...65_535), default: "8080",
            "The port on which clients are served; 0 takes a free one."),
        ConfigurationKey(
            "http.publicURL", .url(schemes: ["https", "http"]),
            "How clients reach the relay, where a proxy stands before it."),
        ConfigurationKey(
            "tls.certificateFile", .text,
            "The certificate chain in PEM form; with it, clients are served over TLS."),
        ConfigurationKey(
            "tls.privateKeyFile", .text, "The private key of the certificate in PEM form."),
        ConfigurationKey(
            "tls.caFile", .text,
            "The certificate authorities, in PEM form, by which the relay's own commands verify "
                + "its certificate, besides the system's, where it is not the one in "
                + "tls.certificateFile."),
        ConfigurationKey(
            "admin.host", .text, default: "127.0.0.1",
            "The address of the administrative surface."),
        ConfigurationKey(
            "admin.port", .integer(0...65_535), default: "8081",
            "The port of the administrative surface; with address and port of the clients' "
                + "listener, it is served there."),
        ConfigurationKey(
            "admin.token", .longSecret(Limits.minimumAdminTokenBytes), secrecy: .secret,
            "The token of the administrative surface; without one it is closed."),
        ConfigurationKey(
            "signIn.url", .text,
            "Where users sign in: the redirectURL of AUTHENTICATION_REQUIRED begins with it."),
    ]

    private static let storage = [
        ConfigurationKey(
            "storage.path", .text, default: "belfry.sqlite", "The file of the embedded store."),
        ConfigurationKey(
            "storage.create", .choice(["never", "whenMissing"]), default: "never",
            "Whether a new store is made where there is none; the first start needs it."),
        ConfigurationKey(
            "secrets.key", .text, secrecy: .secret,
            "The key that encrypts the secrets in the store: \(SecretKey.rule)."),
        ConfigurationKey(
            "secrets.keyFile", .text, "The file with that key, instead."),
        ConfigurationKey(
            "secrets.previousKeyFile", .text,
            "The file with the key before, while one replaces another: what it encrypted is "
                + "encrypted anew at the start."),
        ConfigurationKey(
            "storage.commitMilliseconds", .integer(0...1000), default: "2",
            "How long a commit waits for company while others are writing."),
        ConfigurationKey(
            "storage.commitChanges", .integer(1...10_000), default: "256",
            "The changes after which a commit waits for no more."),
        ConfigurationKey(
            "storage.waitingChanges", .integer(1...1_000_000), default: "16384",
            "The changes that may wait to be written; beyond, 429 is answered."),
        ConfigurationKey(
            "storage.waitingMegabytes", .integer(1...4096), default: "64",
            "The size of the changes that may wait to be written; beyond, 429 is answered."),
        ConfigurationKey(
            "storage.diskReserveMegabytes", .integer(0...1_048_576), default: "64",
            "The room on the disk that is kept for settling; below, 507 is answered."),
        ConfigurationKey(
            "snapshot.minutes", .integer(0...10_080), default: "10",
            "The time from one snapshot of the index to the next at the least; 0 keeps none."),
    ]

    private static let gateway = [
        ConfigurationKey(
            "apns.url", .url(schemes: ["https"]),
            "The push gateway of both environments, instead of Apple's."),
        ConfigurationKey(
            "apns.development.url", .url(schemes: ["https"]),
            default: "https://api.sandbox.push.apple.com",
            "The push gateway of development tokens."),
        ConfigurationKey(
            "apns.production.url", .url(schemes: ["https"]),
            default: "https://api.push.apple.com", "The push gateway of production tokens."),
        ConfigurationKey(
            "apns.caFile", .text,
            "The certificate authorities, in PEM form, that the gateway's certificate must come "
                + "from, instead of the system's."),
        ConfigurationKey(
            "apns.connections", .integer(1...64), default: "4",
            "The connections to each gateway at the most."),
        ConfigurationKey(
            "delivery.inFlight", .integer(1...Limits.maximumDeliveriesInFlight), default: "4096",
            "The deliveries that are sent and not yet settled: with as many that get no answer, "
                + "the most that a crash repeats of the log."),
        ConfigurationKey(
            "delivery.maxAttempts", .integer(1...Limits.maximumDeliveryAttempts), default: "24",
            "The sends of one delivery before it becomes a dead letter."),
        ConfigurationKey(
            "delivery.silentPushesPerHour", .integer(0...3600), default: "0",
            "The background pushes of one device in an hour, 0 for any number; Apple asks for 3."),
        ConfigurationKey(
            "apns.proxy", .text, secrecy: .secret,
            "The URL of an HTTP proxy on the way to the gateway; it may hold a password."),
    ]

    private static let fetching = [
        ConfigurationKey(
            "courier.holdSeconds", .integer(1...600), default: "25",
            "How long a poll of a web courier is held; clients give up after 30 seconds."),
        ConfigurationKey(
            "courier.polls", .integer(1...100_000), default: "1000",
            "The polls of web couriers that are held at a time."),
        ConfigurationKey(
            "courier.queueLength", .integer(1...100_000), default: "500",
            "The notifications that wait for one web courier; beyond, the oldest are dropped."),
        ConfigurationKey(
            "courier.queueHours", .integer(1...720), default: "72",
            "How long a notification waits for a web courier."),
        ConfigurationKey(
            "courier.idleDays", .integer(1...365), default: "30",
            "The days without a poll after which a web courier ends."),
        ConfigurationKey(
            "inbox.days", .integer(1...3650), default: "30",
            "How long a notification is kept in its user's inbox."),
        ConfigurationKey(
            "inbox.perUser", .integer(1...1_000_000), default: "1000",
            "The notifications that are kept in one user's inbox; beyond, the oldest are dropped."),
    ]

    private static let operation = [
        ConfigurationKey(
            "log.level",
            .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            default: "info", "What is logged at the least."),
        ConfigurationKey(
            "shutdown.graceSeconds", .integer(0...3600), default: "20",
            "How long what is in flight may take to finish at the end."),
    ]

    private static let limits = [
        ConfigurationKey(
            "limits.requestBytes", .integer(1024...Limits.maximumRequestBytes),
            default: "\(Limits.maximumRequestBytes)", "The body of a client's request."),
        ConfigurationKey(
            "limits.webhookBytes", .integer(1024...Limits.maximumWebhookBytes),
            default: "\(Limits.maximumWebhookBytes)", "The body of a webhook."),
        ConfigurationKey(
            "limits.operations", .integer(1...Limits.maximumOperationsPerRequest),
            default: "\(Limits.maximumOperationsPerRequest)",
            "The operations, subscriptions or tokens of one request."),
        ConfigurationKey(
            "limits.deniedRecordTypes", .list, default: "_*",
            "Record types that take no subscriptions; * stands for anything."),
        ConfigurationKey(
            "limits.predicateCost", .integer(1...1_000_000), default: "500",
            "The comparisons that one predicate may add to every change of its record type."),
        ConfigurationKey(
            "limits.userCost", .integer(1...1_000_000), default: "2000",
            "The same for all predicates of one user on one record type."),
        ConfigurationKey(
            "limits.recordTypeCost", .integer(1...10_000_000), default: "20000",
            "The same for all predicates on one record type, equal ones counted once."),
    ]
}
