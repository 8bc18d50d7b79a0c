/// Limits that several rooms share.
///
/// Sizes are in bytes unless the name says otherwise.
public enum Limits {
    // MARK: Names

    /// The length of names of containers, users, devices, subscriptions, zones and record types.
    public static let maximumNameBytes = 255
    /// The length of record names; sources with several key columns need more than CloudKit's 255.
    public static let maximumRecordNameBytes = 1024
    /// The number of hexadecimal digits of a device token.
    ///
    /// Current tokens have 64; Apple says that they may grow.
    public static let deviceTokenDigits = 32...512

    // MARK: Requests

    /// The nesting depth of incoming JSON.
    public static let maximumJSONDepth = 128
    /// The nesting depth of one field's value in the relay's notation.
    ///
    /// It may exceed the depth of the JSON that the value came as, for example for a set, a date,
    /// or a text that holds JSON.
    public static let maximumValueDepth = 128
    /// The nesting depth of JSON that the relay itself wrote: incoming JSON or a value, within at
    /// most 32 levels of the relay's own.
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
    /// Fields of all record types of one container in one environment.
    ///
    /// A new schema is written in one transaction, while all other writers wait.
    public static let maximumFieldsPerSchema = 20_000
    /// New fields that a container in development learns, from one request and in total.
    ///
    /// Those of a request are written in one transaction, while other writers wait; all of them are
    /// read again after each.
    public static let maximumLearnedFields = (request: 1000, container: maximumFieldsPerSchema)
    /// Roles of one container in one environment.
    public static let maximumRoles = 1000
    /// A record without assets (CloudKit: 1 MB).
    public static let maximumRecordBytes = 1024 * 1024
    /// Records in one answer (CloudKit's limit).
    public static let maximumRecordsPerAnswer = 200
    /// The stored texts in one page of a list; a page has at least one element, however long.
    public static let maximumPageBytes = 4 * 1024 * 1024
    /// Zones of one database.
    public static let maximumZonesPerDatabase = 10_000
    /// The text of a schema.
    public static let maximumSchemaBytes = 1024 * 1024
    /// Subscriptions of one user in one database.
    public static let maximumSubscriptionsPerUser = 10_000
    /// The greatest difference between the date of a signed request and the relay's clock
    /// (CloudKit).
    public static let requestSignatureTolerance: Duration = .seconds(600)
    /// The greatest difference between the timestamp of a signed webhook and the relay's clock
    /// (Standard Webhooks 1.0).
    public static let webhookSignatureTolerance: Duration = .seconds(300)
    /// A user token (JWT); tokens of large providers have 2 to 4 kB.
    public static let maximumUserTokenBytes = 16 * 1024
    /// The minimum length of the administrative token.
    ///
    /// A shorter one could be found by trying; `openssl rand -hex 24` makes one of 48 bytes.
    public static let minimumAdminTokenBytes = 24
    /// How far an issuer's clock may be ahead of the relay's when the relay checks `nbf`.
    public static let userTokenLeeway: Duration = .seconds(60)

    // MARK: Texts

    /// Combining marks in a row in an incoming text (Unicode's own bound for streams is 30).
    public static let maximumMarksInARow = 64

    // MARK: Predicates

    /// The text of a predicate.
    public static let maximumPredicateBytes = 256 * 1024
    /// Nesting of a predicate.
    public static let maximumPredicateDepth = 200
    /// Elements of a list constant in a predicate.
    public static let maximumPredicateListElements = 10_000
    /// Steps of one evaluation of a predicate on one record, about 2 ns each.
    ///
    /// Beyond this limit the outcome is an evaluation error.
    public static let maximumEvaluationSteps = 10_000_000
    /// Steps of all evaluations for one change; beyond this limit the change is set aside.
    ///
    /// Operations that could take long are counted by their duration, at 2 ns a step. The limit is
    /// a fifth of a second.
    public static let maximumStepsPerChange = 100_000_000
    /// The text of a regular expression in a predicate.
    public static let maximumRegularExpressionBytes = 4096

    // MARK: Notifications

    /// The payload of a push (APNs).
    public static let maximumPayloadBytes = 4096
    /// The length of an argument of a localised text when a payload is too long (CloudKit cuts at
    /// the same length).
    public static let cutArgumentCharacters = 100
    /// A collapse ID (APNs).
    public static let maximumCollapseIDBytes = 64
    /// Each text of a notification info; a longer one could never fit a payload.
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

    /// Deliveries that may be admitted and not yet settled; a crash can repeat at most this number.
    public static let maximumDeliveriesInFlight = 16_384
    /// Subscriptions fired by one change that the follower works in the log's turn.
    ///
    /// If more fire, they are worked in ranges beside the log.
    public static let maximumMatchesAtOnce = 10_000
    /// Deliveries of one subscription to one device that are held back individually; further ones
    /// are told together.
    public static let maximumHeldDeliveries = 20
    /// Deliveries to one user of one container that are held back individually.
    ///
    /// It also limits the user's digests; beyond it, the subscriptions of a device share a digest.
    public static let maximumHeldDeliveriesOfUser = 5000
    /// Attempts at one delivery before it becomes a dead letter.
    public static let maximumDeliveryAttempts = 24

    // MARK: The web courier, the inbox and sessions

    /// Polls of one courier that the relay holds open at the same time.
    public static let maximumPollsPerCourier = 4
    /// Couriers of one user in one container; a further one ends the courier that was polled least
    /// recently.
    public static let maximumCouriersPerUser = 50
    /// The payload of a notification in the inbox; for a longer one, the inbox keeps the payload
    /// that was pushed.
    public static let maximumInboxPayloadBytes = 32 * 1024
    /// Notifications in one answer (CloudKit: 200 results).
    public static let maximumNotificationsPerPage = 200
    /// Notifications that may wait to be written to inboxes, besides deliveries in flight.
    public static let maximumInboxEntriesWaiting = 8192
    /// Firings that may wait to be recorded, besides deliveries in flight.
    public static let maximumFiringsWaiting = 262_144
    /// Client receipts of one user; beyond this limit the oldest are dropped.
    public static let maximumClientReceiptsPerUser = 2000
    /// Sessions of one user in one container; a further one ends the oldest session.
    public static let maximumSessionsPerUser = 100
}
