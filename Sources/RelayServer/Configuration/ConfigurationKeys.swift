import RelayModel
import Storage

/// Every setting, in the order of the documentation (`docs/configuration.md`).
package enum ConfigurationKeys {
    /// The settings.
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
            "How clients reach the relay, where a proxy stands before it."),
        ConfigurationKey(
            "tls.certificateFile", text: \.certificateFile,
            "The certificate chain in PEM form; with it, clients are served over TLS."),
        ConfigurationKey(
            "tls.privateKeyFile", text: \.privateKeyFile,
            "The private key of the certificate in PEM form."),
        ConfigurationKey(
            "tls.caFile", text: \.caFile,
            "The certificate authorities, in PEM form, by which the relay's own commands verify "
                + "its certificate, besides the system's, where it is not the one in "
                + "tls.certificateFile."),
        ConfigurationKey(
            "admin.host", text: \.admin.host,
            "The address of the administrative surface."),
        ConfigurationKey(
            "admin.port", number: \.admin.port, 0...65_535,
            "The port of the administrative surface; with address and port of the clients' "
                + "listener, it is served there."),
        ConfigurationKey(
            "admin.token", text: \.adminToken, as: .longSecret(Limits.minimumAdminTokenBytes),
            secrecy: .secret,
            "The token of the administrative surface; without one it is closed."),
        ConfigurationKey(
            "signIn.url", text: \.signInURL, as: .page(schemes: ["https", "http"]),
            "Where users sign in: the redirectURL of AUTHENTICATION_REQUIRED begins with it."),
    ]

    private static let storage = [
        ConfigurationKey(
            "storage.path", text: \.storagePath,
            "The file of the embedded store; with storage.url, what is kept beside the database: "
                + "snapshots of the index begin with this name."),
        ConfigurationKey(
            // A password in it is refused, and must not be shown before that either.
            "storage.url", text: \.storageURL, secrecy: .secret,
            "The PostgreSQL database that is the store instead of a file, without a password: that "
                + "is in the file that PGPASSFILE names."),
        ConfigurationKey(
            "storage.schema", text: \.storageSchema,
            "The schema of that database that holds the store, and nothing else."),
        ConfigurationKey(
            "storage.create", choice: \.store.creation,
            "Whether a new store is made where there is none; the first start needs it."),
        ConfigurationKey(
            "secrets.key", text: \.secretKeys.key, secrecy: .secret,
            "The key that encrypts the secrets in the store: \(SecretKey.rule)."),
        ConfigurationKey(
            "secrets.keyFile", text: \.secretKeys.keyFile,
            "The file with that key, instead."),
        ConfigurationKey(
            "secrets.previousKeyFile", text: \.secretKeys.previousKeyFile,
            "The file with the key before, while one replaces another: what it encrypted is "
                + "encrypted anew at the start."),
        ConfigurationKey(
            "storage.commitMilliseconds", time: \.store.commitDelay, in: .milliseconds(1), 0...1000,
            "How long a commit waits for company while others are writing."),
        ConfigurationKey(
            "storage.commitChanges", number: \.store.commitChanges, 1...10_000,
            "The changes after which a commit waits for no more."),
        ConfigurationKey(
            "storage.waitingChanges", number: \.store.waitingChanges, 1...1_000_000,
            "The changes that may wait to be written; beyond, 429 is answered."),
        ConfigurationKey(
            "storage.waitingMegabytes", number: \.store.waitingBytes, 1...4096, unit: .mebibyte,
            "The size of the changes that may wait to be written; beyond, 429 is answered."),
        ConfigurationKey(
            "storage.diskReserveMegabytes", number: \.store.diskReserveBytes, 0...1_048_576,
            unit: .mebibyte,
            "The room on the disk that is kept for settling; below, 507 is answered."),
        ConfigurationKey(
            "snapshot.minutes", zeroForNone: \.snapshotInterval, in: .minute, 0...10_080,
            "The time from one snapshot of the index to the next at the least; 0 keeps none."),
    ]

    private static let gateway = [
        ConfigurationKey(
            "apns.url", text: \.gateway.both, as: .url(schemes: ["https"]),
            "The push gateway of both environments, instead of Apple's."),
        ConfigurationKey(
            "apns.development.url", text: \.gateway.development, as: .url(schemes: ["https"]),
            "The push gateway of development tokens."),
        ConfigurationKey(
            "apns.production.url", text: \.gateway.production, as: .url(schemes: ["https"]),
            "The push gateway of production tokens."),
        ConfigurationKey(
            "apns.caFile", text: \.gateway.caFile,
            "The certificate authorities, in PEM form, that the gateway's certificate must come "
                + "from, instead of the system's."),
        ConfigurationKey(
            "apns.connections", number: \.gateway.connections, 1...64,
            "The connections to each gateway at the most."),
        ConfigurationKey(
            "delivery.inFlight", number: \.delivery.inFlight, 1...Limits.maximumDeliveriesInFlight,
            "The deliveries that are sent and not yet settled: with as many that get no answer, "
                + "the most that a crash repeats of the log."),
        ConfigurationKey(
            "delivery.maxAttempts", number: \.delivery.maximumAttempts,
            1...Limits.maximumDeliveryAttempts,
            "The answered sends of one delivery before it becomes a dead letter."),
        ConfigurationKey(
            "delivery.silentPushesPerHour", number: \.delivery.silentPushesPerHour, 0...3600,
            "The background pushes of one device in an hour, 0 for any number; Apple asks for 3."),
        ConfigurationKey(
            "apns.proxy", text: \.gateway.proxy, secrecy: .secret,
            "The URL of an HTTP proxy on the way to the gateway; it may hold a password."),
    ]

    private static let fetching = [
        ConfigurationKey(
            "courier.holdSeconds", time: \.fetching.polls.hold, in: .seconds(1), 1...600,
            "How long a poll of a web courier is held; clients give up after 30 seconds."),
        ConfigurationKey(
            "courier.polls", number: \.fetching.polls.polls, 1...100_000,
            "The polls of web couriers that are held at a time."),
        ConfigurationKey(
            "courier.queueLength", number: \.fetching.bounds.count, 1...100_000,
            "The notifications that wait for one web courier; beyond, the oldest are dropped."),
        ConfigurationKey(
            "courier.queueHours", time: \.fetching.bounds.age, in: .hour, 1...720,
            "How long a notification waits for a web courier."),
        ConfigurationKey(
            "courier.idleDays", time: \.upkeep.courierIdle, in: .day, 1...365,
            "The days without a poll after which a web courier ends."),
        ConfigurationKey(
            "inbox.days", time: \.upkeep.inboxAge, in: .day, 1...3650,
            "How long a notification is kept in its user's inbox."),
        ConfigurationKey(
            "inbox.perUser", number: \.store.inboxPerUser, 1...1_000_000,
            "The notifications that are kept in one user's inbox, about; beyond, the oldest are "
                + "dropped."),
    ]

    private static let operation = [
        ConfigurationKey(
            "log.level", choice: \.logLevel,
            "What is logged at the least, unless belfry log level says something else meanwhile."),
        ConfigurationKey(
            "log.format", choice: \.logForm,
            "How a line of the log is written: for people, or as one JSON object."),
        ConfigurationKey(
            "log.access", choice: \.accessLog.choice,
            "Which requests have a line in the log, at the level info; none holds a token, a "
                + "secret, a parameter or a body."),
        ConfigurationKey(
            "log.accessSample", number: \.accessLog.sample, 1...1_000_000,
            "Of so many of these requests one has a line; those answered 5xx have one always."),
        ConfigurationKey(
            "log.accessPerSecond", number: \.accessLog.perSecond, 1...1_000_000,
            "The lines of requests in a second at the most; how many were left out is told."),
        ConfigurationKey(
            "shutdown.graceSeconds", time: \.shutdownGrace, in: .seconds(1), 0...3600,
            "How long what is in flight may take to finish at the end."),
    ]

    private static let limits = [
        ConfigurationKey(
            "limits.requestBytes", number: \.limits.requestBytes, 1024...Limits.maximumRequestBytes,
            "The body of a client's request."),
        ConfigurationKey(
            "limits.webhookBytes", number: \.limits.webhookBytes, 1024...Limits.maximumWebhookBytes,
            "The body of a webhook."),
        ConfigurationKey(
            "limits.operations", number: \.limits.operations,
            1...Limits.maximumOperationsPerRequest,
            "The operations, subscriptions or tokens of one request."),
        ConfigurationKey(
            "limits.deniedRecordTypes", list: \.limits.deniedRecordTypes,
            "Record types that take no subscriptions; * stands for anything."),
        ConfigurationKey(
            "limits.predicateCost", number: \.limits.costs.perPredicate, 1...1_000_000,
            "The comparisons that one predicate may add to every change of its record type."),
        ConfigurationKey(
            "limits.userCost", number: \.limits.costs.perUser, 1...1_000_000,
            "The same for all predicates of one user on one record type."),
        ConfigurationKey(
            "limits.recordTypeCost", number: \.limits.costs.perRecordType, 1...10_000_000,
            "The same for all predicates on one record type, equal ones counted once."),
        ConfigurationKey(
            "limits.conditionMegabytesPerUser", number: \.limits.costs.userMegabytes, 1...953_674,
            "The memory that one user's conditions take in a container, of those that take more "
                + "than 4 KiB."),
        ConfigurationKey(
            "limits.conditionMegabytesPerContainer", number: \.limits.costs.containerMegabytes,
            1...953_674, "The same for all conditions of a container, equal ones counted once."),
    ]
}
