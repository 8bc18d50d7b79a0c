/// Every limit of the relay, in one place.
///
/// Sizes are bytes unless the name says otherwise.
public enum Limits {
    // MARK: Names

    /// Names of containers, users, devices, subscriptions, zones and record types.
    public static let maximumNameBytes = 255
    /// Names of records; sources with several key columns need more than CloudKit's 255.
    public static let maximumRecordNameBytes = 1024
    /// The hexadecimal digits of a device token.
    ///
    /// Today's are 64; Apple says that they may grow.
    public static let deviceTokenDigits = 32...512

    // MARK: Requests

    /// Nesting of any JSON text that comes in.
    public static let maximumJSONDepth = 128
    /// Nesting of one field's value in the relay's notation, which may be deeper than the JSON that
    /// it came as: a set, a date or a text that holds JSON is.
    public static let maximumValueDepth = 128
    /// Nesting of JSON that the relay itself wrote: what came in, or a value, within at most 32
    /// levels of its own.
    public static let maximumStoredJSONDepth = 160
    /// The body of a client's request (CloudKit: 2 MB).
    public static let maximumRequestBytes = 2 * 1024 * 1024
    /// The body of a webhook.
    public static let maximumWebhookBytes = 4 * 1024 * 1024
    /// Operations, subscriptions or tokens in one request (CloudKit's limit).
    public static let maximumOperationsPerRequest = 200
    /// Changes in one webhook body.
    public static let maximumChangesPerRequest = 1000
    /// Fields of one record image.
    public static let maximumFieldsPerRecord = 1000
    /// Record types of one container in one environment.
    public static let maximumRecordTypes = 1000
    /// Fields of all record types of one container in one environment: a new schema is written at
    /// once while nobody else writes.
    public static let maximumFieldsPerSchema = 20_000
    /// Fields that a container in development learns from one request, all of which are written at
    /// once while nobody else writes; and from all of them, because all are read again after each.
    public static let maximumLearnedFields = (request: 1000, container: maximumFieldsPerSchema)
    /// Roles of one container in one environment.
    public static let maximumRoles = 1000
    /// A record without assets (CloudKit: 1 MB).
    public static let maximumRecordBytes = 1024 * 1024
    /// Records in one answer (CloudKit's limit).
    public static let maximumRecordsPerAnswer = 200
    /// The stored texts of one page of a list; a page has one element at least.
    public static let maximumPageBytes = 4 * 1024 * 1024
    /// Zones of one database.
    public static let maximumZonesPerDatabase = 10_000
    /// The text of a schema.
    public static let maximumSchemaBytes = 1024 * 1024
    /// Subscriptions of one user in one database.
    public static let maximumSubscriptionsPerUser = 10_000
    /// How far the date of a signed request may be from the relay's clock (CloudKit).
    public static let requestSignatureTolerance: Duration = .seconds(600)
    /// How far the timestamp of a signed webhook may be from the relay's clock
    /// (Standard Webhooks 1.0).
    public static let webhookSignatureTolerance: Duration = .seconds(300)
    /// A user token (JWT); those of large providers have 2 to 4 kB.
    public static let maximumUserTokenBytes = 16 * 1024
    /// The token of the administrative surface, in bytes, at least.
    ///
    /// What is shorter can be found by trying; `openssl rand -hex 24` makes one of 48.
    public static let minimumAdminTokenBytes = 24
    /// How far the issuer's clock may be ahead of the relay's where a token has just begun (`nbf`).
    public static let userTokenLeeway: Duration = .seconds(60)

    // MARK: Texts

    /// Combining marks that follow each other in a text that comes in (Unicode's own bound for
    /// streams is 30).
    public static let maximumMarksInARow = 64

    // MARK: Predicates

    /// The text of a predicate.
    public static let maximumPredicateBytes = 256 * 1024
    /// Nesting of a predicate.
    public static let maximumPredicateDepth = 200
    /// Elements of a list constant in a predicate.
    public static let maximumPredicateListElements = 10_000
    /// Steps of one evaluation of a predicate on one record, about 2 ns each; beyond, it has no
    /// answer for the record.
    public static let maximumEvaluationSteps = 10_000_000
    /// Steps of all evaluations that one change asks for; beyond, the change is set aside.
    ///
    /// Of what could take long, the time that it took counts, 2 ns a step: a fifth of a second.
    public static let maximumStepsPerChange = 100_000_000
    /// The text of a regular expression in a predicate.
    public static let maximumRegularExpressionBytes = 4096

    // MARK: Notifications

    /// The payload of a push (APNs).
    public static let maximumPayloadBytes = 4096
    /// An argument of a localised text in a payload that is too long (CloudKit cuts at as many).
    public static let cutArgumentCharacters = 100
    /// A collapse ID (APNs).
    public static let maximumCollapseIDBytes = 64
    /// Each text of a notification info; longer ones could never fit a payload.
    public static let maximumNotificationTextBytes = 2048
    /// Field names in `desiredKeys`.
    ///
    /// CloudKit allows 3; the payload's size is the real limit.
    public static let maximumDesiredKeys = 32
    /// Field names in `changedKeys` of a subscription.
    public static let maximumChangedKeys = 32
    /// Field names in each list of localisation arguments.
    public static let maximumLocalizationArguments = 16

    // MARK: Delivery

    /// Deliveries that may be admitted and not yet settled: the most that a crash can repeat.
    public static let maximumDeliveriesInFlight = 16_384
    /// Subscriptions that one change fires and that are worked in the log's turn; what fires more
    /// is worked in ranges beside the log.
    public static let maximumMatchesAtOnce = 10_000
    /// Deliveries of one subscription to one device that are held back each for itself; what is
    /// held beyond is told together.
    public static let maximumHeldDeliveries = 20
    /// Deliveries to one user of one container that are held back each for itself; and digests of
    /// what is told together, beyond which subscriptions share those of their devices.
    public static let maximumHeldDeliveriesOfUser = 5000
    /// Sends of one delivery before it becomes a dead letter.
    public static let maximumDeliveryAttempts = 24

    // MARK: The web courier, the inbox and sessions

    /// Polls of one courier that are held at a time.
    public static let maximumPollsPerCourier = 4
    /// Couriers of one user in one container; a further one ends the one that was polled least
    /// recently.
    public static let maximumCouriersPerUser = 50
    /// The payload of a notification in the inbox; a longer one is kept as it was pushed.
    public static let maximumInboxPayloadBytes = 32 * 1024
    /// Notifications in one answer (CloudKit: 200 results).
    public static let maximumNotificationsPerPage = 200
    /// Notifications that may wait to be written to inboxes beside deliveries in flight.
    public static let maximumInboxEntriesWaiting = 8192
    /// What changes did to subscriptions that may wait to be recorded beside deliveries in flight.
    public static let maximumFiringsWaiting = 262_144
    /// What a user's clients said of notifications; beyond it what was said first goes.
    public static let maximumClientReceiptsPerUser = 2000
    /// Sessions of one user in one container; a further one ends the oldest.
    public static let maximumSessionsPerUser = 100
}
