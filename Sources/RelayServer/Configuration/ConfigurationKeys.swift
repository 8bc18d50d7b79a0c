import RelayModel
import Storage

/// All settings, in the order of the documentation (`docs/configuration.md`).
package enum ConfigurationKeys {
    /// The keys of all settings.
    package static let all =
        listeners + listening + storage + nodes + upkeep + backup + gateway + fetching + operation
        + limits + queries + live + quotas

    private static let listeners = [
        ConfigurationKey(
            "http.host", text: \.http.host,
            "The address on which clients are served."),
        ConfigurationKey(
            "http.port", number: \.http.port, 0...65_535,
            "The port on which clients are served; 0 takes a free one."),
        ConfigurationKey(
            "http.publicURL", text: \.givenPublicURL, as: .url(schemes: ["https", "http"]),
            "The URL by which clients reach the relay, where a proxy stands in front of it."),
        ConfigurationKey(
            "tls.certificateFile", text: \.certificateFile,
            "The certificate chain in PEM form; with it, clients are served over TLS."),
        ConfigurationKey(
            "tls.privateKeyFile", text: \.privateKeyFile,
            "The private key of the certificate in PEM form."),
        ConfigurationKey(
            "tls.caFile", text: \.caFile,
            "The certificate authorities, in PEM form, by which the relay's own commands verify "
                + "its certificate, in addition to the system's; needed where that certificate is "
                + "not the one in tls.certificateFile."),
        ConfigurationKey(
            "admin.host", text: \.admin.host,
            "The address of the administrative surface."),
        ConfigurationKey(
            "admin.port", number: \.admin.port, 0...65_535,
            "The port of the administrative surface; if address and port are those of the clients' "
                + "listener, that listener serves both."),
        ConfigurationKey(
            "admin.token", text: \.adminToken, as: .longSecret(Limits.minimumAdminTokenBytes),
            secrecy: .secret,
            "The token of the administrative surface; without one, the surface is closed."),
        ConfigurationKey(
            "signIn.url", text: \.signInURL, as: .page(schemes: ["https", "http"]),
            "The page on which users sign in: the redirectURL of AUTHENTICATION_REQUIRED begins "
                + "with it."),
    ]

    private static let storage = [
        ConfigurationKey(
            "storage.path", text: \.storagePath,
            "The file of the embedded store; with storage.url, the beginning of the names of files "
                + "that are kept beside the database: snapshots of the index."),
        ConfigurationKey(
            // A URL with a password is refused, and it must not be shown in that error either.
            "storage.url", text: \.storageURL, secrecy: .secret,
            "The URL, without a password, of the PostgreSQL database that is the store instead of "
                + "a file; the password is in the file that PGPASSFILE names."),
        ConfigurationKey(
            "storage.schema", text: \.storageSchema,
            "The schema of that database that holds the store, and nothing else."),
        ConfigurationKey(
            "storage.create", choice: \.store.creation,
            "Whether the relay makes a new store where there is none; the first start needs it."),
        ConfigurationKey(
            "storage.requireStandby", isOn: \.requiresStandby,
            "Whether the relay refuses a PostgreSQL server whose synchronous_standby_names is "
                + "empty, so that nothing is acknowledged that one machine alone has."),
        ConfigurationKey(
            "secrets.key", text: \.secretKeys.key, secrecy: .secret,
            "The key that encrypts the secrets in the store: \(SecretKey.rule)."),
        ConfigurationKey(
            "secrets.keyFile", text: \.secretKeys.keyFile,
            "The file with that key, in place of secrets.key."),
        ConfigurationKey(
            "secrets.previousKeyFile", text: \.secretKeys.previousKeyFile,
            "The file with the previous key, while one key replaces another: at the start the "
                + "relay encrypts anew what that key encrypted."),
        ConfigurationKey(
            "storage.commitMilliseconds", time: \.store.commitDelay, in: .milliseconds(1), 0...1000,
            "How long a commit waits for further changes while others are writing."),
        ConfigurationKey(
            "storage.commitChanges", number: \.store.commitChanges, 1...10_000,
            "The number of changes at which a commit waits no longer."),
        ConfigurationKey(
            "storage.waitingChanges", number: \.store.waitingChanges, 1...1_000_000,
            "How many changes may wait to be written; beyond that, the relay answers 429."),
        ConfigurationKey(
            "storage.waitingMegabytes", number: \.store.waitingBytes, 1...4096, unit: .mebibyte,
            "The size of the changes that may wait to be written; beyond that, the relay answers "
                + "429."),
        ConfigurationKey(
            "storage.diskReserveMegabytes", number: \.store.diskReserveBytes, 0...1_048_576,
            unit: .mebibyte,
            "The room on the disk that the relay keeps for settling; if less is free, it answers "
                + "507."),
        ConfigurationKey(
            "snapshot.minutes", zeroForNone: \.snapshotInterval, in: .minute, 0...10_080,
            "The least time from one snapshot of the index to the next; 0 keeps none."),
    ]

    private static let gateway = [
        ConfigurationKey(
            "apns.url", text: \.gateway.both, as: .url(schemes: ["https"]),
            "The push gateway of both environments, in place of Apple's."),
        ConfigurationKey(
            "apns.development.url", text: \.gateway.development, as: .url(schemes: ["https"]),
            "The push gateway of development tokens."),
        ConfigurationKey(
            "apns.production.url", text: \.gateway.production, as: .url(schemes: ["https"]),
            "The push gateway of production tokens."),
        ConfigurationKey(
            "apns.caFile", text: \.gateway.caFile,
            "The certificate authorities, in PEM form, of which one must have issued the gateway's "
                + "certificate, in place of the system's."),
        ConfigurationKey(
            "apns.connections", number: \.gateway.connections, 1...64,
            "How many connections to each gateway the relay opens at most."),
        ConfigurationKey(
            "delivery.inFlight", number: \.delivery.inFlight, 1...Limits.maximumDeliveriesInFlight,
            "How many deliveries may be sent and not yet settled. After a crash the relay repeats "
                + "at most these from the log, and as many again that get no answer."),
        ConfigurationKey(
            "delivery.maxAttempts", number: \.delivery.maximumAttempts,
            1...Limits.maximumDeliveryAttempts,
            "How many answered sends a delivery may have before it becomes a dead letter."),
        ConfigurationKey(
            "delivery.silentPushesPerHour", number: \.delivery.silentPushesPerHour, 0...3600,
            "How many background pushes one device may get in an hour, 0 for any number; Apple "
                + "asks for 3."),
        ConfigurationKey(
            "apns.proxy", text: \.gateway.proxy, as: .proxy(schemes: ["http", "https"]),
            secrecy: .secret,
            "The URL of an HTTP proxy on the way to the gateway; it may hold a password."),
    ]

    private static let fetching = [
        ConfigurationKey(
            "courier.holdSeconds", time: \.fetching.polls.hold, in: .seconds(1), 1...600,
            "How long the relay holds a poll of a web courier; clients give up after 30 seconds."),
        ConfigurationKey(
            "courier.polls", number: \.fetching.polls.polls, 1...100_000,
            "How many polls of web couriers the relay holds at a time."),
        ConfigurationKey(
            "courier.queueLength", number: \.fetching.bounds.count, 1...100_000,
            "How many notifications may wait for one web courier; beyond that, the oldest are "
                + "dropped."),
        ConfigurationKey(
            "courier.queueHours", time: \.fetching.bounds.age, in: .hour, 1...720,
            "How long a notification waits for a web courier."),
        ConfigurationKey(
            "courier.idleDays", time: \.upkeep.courierIdle, in: .day, 1...365,
            "After how many days without a poll a web courier ends."),
        ConfigurationKey(
            "inbox.days", time: \.upkeep.inboxAge, in: .day, 1...3650,
            "How long a notification is kept in its user's inbox."),
        ConfigurationKey(
            "inbox.perUser", number: \.store.inboxPerUser, 1...1_000_000,
            "About how many notifications one user's inbox keeps; beyond that, the oldest are "
                + "dropped."),
    ]

    private static let operation = [
        ConfigurationKey(
            "log.level", choice: \.logLevel,
            "The lowest level that is logged, unless belfry log level has set another one."),
        ConfigurationKey(
            "log.format", choice: \.logForm,
            "How the relay writes a line of the log: for people, or as one JSON object."),
        ConfigurationKey(
            "log.access", choice: \.accessLog.choice,
            "Which requests have a line in the log, at the level info; no line holds a token, a "
                + "secret, a parameter or a body."),
        ConfigurationKey(
            "log.accessSample", number: \.accessLog.sample, 1...1_000_000,
            "One in this many of these requests has a line; those answered 5xx always have one."),
        ConfigurationKey(
            "log.accessPerSecond", number: \.accessLog.perSecond, 1...1_000_000,
            "How many lines of requests there are in a second at most, besides those answered 5xx, "
                + "of which there are at most 1000; the log says how many were left out."),
        ConfigurationKey(
            "shutdown.graceSeconds", time: \.shutdownGrace, in: .seconds(1), 0...3600,
            "How long work that is in flight may take to finish when the relay ends."),
    ]

    private static let limits = [
        ConfigurationKey(
            "limits.requestBytes", number: \.limits.requestBytes, 1024...Limits.maximumRequestBytes,
            "The greatest length of the body of a client's request."),
        ConfigurationKey(
            "limits.webhookBytes", number: \.limits.webhookBytes, 1024...Limits.maximumWebhookBytes,
            "The greatest length of the body of a webhook."),
        ConfigurationKey(
            "limits.operations", number: \.limits.operations,
            1...Limits.maximumOperationsPerRequest,
            "How many operations, subscriptions or tokens one request may have."),
        ConfigurationKey(
            "limits.deniedRecordTypes", list: \.limits.deniedRecordTypes,
            "The record types that take no subscriptions; * stands for anything."),
        ConfigurationKey(
            "limits.predicateCost", number: \.limits.costs.perPredicate, 1...1_000_000,
            "How many comparisons one predicate may add to every change of its record type."),
        ConfigurationKey(
            "limits.userCost", number: \.limits.costs.perUser, 1...1_000_000,
            "How many comparisons all predicates of one user on one record type may add to every "
                + "change of that type."),
        ConfigurationKey(
            "limits.recordTypeCost", number: \.limits.costs.perRecordType, 1...10_000_000,
            "How many comparisons all predicates on one record type may add to every change of "
                + "that type; equal predicates count once."),
        ConfigurationKey(
            "limits.conditionMegabytesPerUser", number: \.limits.costs.userMegabytes, 1...953_674,
            "The memory that one user's conditions may take in a container; only conditions that "
                + "take more than 4 KiB count."),
        ConfigurationKey(
            "limits.conditionMegabytesPerContainer", number: \.limits.costs.containerMegabytes,
            1...953_674,
            "The memory that all conditions of a container may take; only conditions that take "
                + "more than 4 KiB count, and equal ones once."),
    ]
}
