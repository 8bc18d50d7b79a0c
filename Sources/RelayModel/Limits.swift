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
    /// Subscriptions of one user in one database.
    public static let maximumSubscriptionsPerUser = 10_000
    /// How far the date of a signed request may be from the relay's clock (CloudKit).
    public static let requestSignatureTolerance: Duration = .seconds(600)
    /// How far the timestamp of a signed webhook may be from the relay's clock
    /// (Standard Webhooks 1.0).
    public static let webhookSignatureTolerance: Duration = .seconds(300)
    /// A user token (JWT); those of large providers have 2 to 4 kB.
    public static let maximumUserTokenBytes = 16 * 1024
    /// How far the issuer's clock may be ahead of the relay's where a token has just begun (`nbf`).
    public static let userTokenLeeway: Duration = .seconds(60)

    // MARK: Predicates

    /// The text of a predicate.
    public static let maximumPredicateBytes = 256 * 1024
    /// Nesting of a predicate.
    public static let maximumPredicateDepth = 200
    /// Elements of a list constant in a predicate.
    public static let maximumPredicateListElements = 10_000
    /// The text of a regular expression in a predicate.
    public static let maximumRegularExpressionBytes = 4096

    // MARK: Notifications

    /// The payload of a push (APNs).
    public static let maximumPayloadBytes = 4096
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
    /// Sends of one delivery before it becomes a dead letter.
    public static let maximumDeliveryAttempts = 24
}
