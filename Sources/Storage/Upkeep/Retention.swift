/// How long things are kept that nothing needs any more but people's questions.
///
/// What is owed is never dropped, whatever the bounds say: log entries after the progress, or of an
/// open range, and retries.
package struct Retention: Sendable, Hashable {
    /// How long log entries are kept; `nil` forever.
    ///
    /// Explaining, rehearsing and catching up reach no further back.
    package var logAge: Duration? = .seconds(7 * 86_400)
    /// The size of the log, about; the oldest go first.
    ///
    /// `nil` is no bound.
    package var logBytes: Int? = 10 * 1024 * 1024 * 1024
    /// How long receipts are kept; `nil` forever.
    package var receiptAge: Duration? = .seconds(7 * 86_400)
    /// The size of the receipts, about.
    ///
    /// `nil` is no bound.
    package var receiptBytes: Int? = 1024 * 1024 * 1024
    /// How long dead letters are kept; `nil` forever.
    package var deadLetterAge: Duration? = .seconds(30 * 86_400)
    /// The dead letters of one container, about.
    ///
    /// `nil` is no bound.
    package var deadLetters: Int? = 1_000_000
    /// How long parked changes are kept; `nil` forever.
    package var parkedAge: Duration? = .seconds(30 * 86_400)
    /// The size of the parked changes; the oldest go first, of the containers that have most.
    ///
    /// `nil` is no bound.
    package var parkedBytes: Int? = 1024 * 1024 * 1024
    /// How long changes and ranges are kept that were set aside, because they cannot be read or
    /// worked; `nil` forever.
    package var quarantineAge: Duration? = .seconds(90 * 86_400)
    /// The size of the changes that were set aside; the oldest go first, of the containers that
    /// have most.
    ///
    /// `nil` is no bound.
    package var quarantineBytes: Int? = 1024 * 1024 * 1024
    /// How long the last version of a record is known after its last change; `nil` forever.
    ///
    /// A record that is forgotten has no image before its next change, and an older version of it
    /// that comes late is not recognised as stale. Within the log's age it counts from the entry.
    /// Records that clients keep in the relay stay.
    package var shadowAge: Duration?
    /// How long a deleted record leaves a mark for those who ask what changed, and one that is not
    /// kept its version after its last change; `nil` forever.
    ///
    /// An older version that comes later than that is not recognised as stale.
    /// A token from before the oldest mark that went has expired.
    package var deletedAge: Duration? = .seconds(90 * 86_400)

    /// How long a subscription stays after it has expired, so that its owner sees why it is silent
    /// and may renew it, and what it owes is not taken back.
    package static let expiredAge = Duration.seconds(86_400)

    package init() {}
}

/// What one round of pruning deleted.
package struct PrunedCounts: Sendable, Hashable {
    /// Dedupe keys that had outlived their window.
    package var dedupeKeys = 0
    /// Subscriptions that had expired a day before.
    package var expired = 0
    /// Versions of subscriptions and devices that ended before anything that is still owed.
    package var endedVersions = 0
    /// Versions that had ended before anything that the log still has.
    package var pastVersions = 0
    /// Log entries.
    package var logEntries = 0
    /// Blocks of receipts.
    package var receiptBlocks = 0
    /// What clients said of notifications.
    package var clientReceipts = 0
    /// Digests that were closed.
    package var digests = 0
    /// Pushes that no throttle counts any more.
    package var throttlePlaces = 0
    /// Dead letters; the accounts remember how many.
    package var deadLetters = 0
    /// Parked changes.
    package var parkedChanges = 0
    /// Changes and ranges that had been set aside.
    package var quarantined = 0
    /// Last versions of records.
    package var shadows = 0
    /// Marks of deleted records.
    package var marks = 0

    /// Creates the counts of a round that found nothing.
    package init() {}
}
