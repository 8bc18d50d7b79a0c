/// How long and up to which size data is kept that is needed only for people's questions.
///
/// Owed work is never deleted, whatever the limits say: log entries after the progress or of an
/// open range, and retries.
package struct Retention: Sendable, Hashable {
    /// How long log entries are kept; `nil` means forever.
    ///
    /// Explanations, rehearsals and clients that catch up reach no further back.
    package var logAge: Duration? = .seconds(7 * 86_400)
    /// The approximate maximum size of the log in bytes.
    ///
    /// The oldest entries are deleted first.
    ///
    /// `nil` means no limit.
    package var logBytes: Int? = 10 * 1024 * 1024 * 1024
    /// The approximate maximum number of dedupe keys of one container, except those of contents.
    ///
    /// Each takes up to 650 bytes. The oldest ones are forgotten first, and a repetition of their
    /// changes counts as a new change.
    ///
    /// `nil` means no limit.
    package var dedupeKeys: Int? = 20_000_000
    /// How long receipts are kept; `nil` means forever.
    package var receiptAge: Duration? = .seconds(7 * 86_400)
    /// The approximate maximum size of the receipts in bytes.
    ///
    /// `nil` means no limit.
    package var receiptBytes: Int? = 1024 * 1024 * 1024
    /// How long dead letters are kept; `nil` means forever.
    package var deadLetterAge: Duration? = .seconds(30 * 86_400)
    /// The approximate maximum number of dead letters of one container.
    ///
    /// `nil` means no limit.
    package var deadLetters: Int? = 1_000_000
    /// How long parked changes are kept; `nil` means forever.
    package var parkedAge: Duration? = .seconds(30 * 86_400)
    /// The maximum size of all parked changes in bytes.
    ///
    /// The oldest ones of the containers with most are deleted first.
    ///
    /// `nil` means no limit.
    package var parkedBytes: Int? = 1024 * 1024 * 1024
    /// How long changes and ranges are kept that were set aside because they cannot be read or
    /// worked; `nil` means forever.
    package var quarantineAge: Duration? = .seconds(90 * 86_400)
    /// The maximum size of all set-aside changes in bytes.
    ///
    /// The oldest ones of the containers with most are deleted first.
    ///
    /// `nil` means no limit.
    package var quarantineBytes: Int? = 1024 * 1024 * 1024
    /// How long the last version of a source's record is kept after its last change; `nil` means
    /// forever.
    ///
    /// A record that was deleted by this has no earlier image at its next change, and an older
    /// version of it that arrives late is not recognised as stale. The age counts from the log
    /// entry while the log has it. Records that clients keep in the relay stay.
    package var shadowAge: Duration?
    /// How long the mark of a deleted record is kept for clients that sync changes, and the version
    /// of a record that is not kept after its last change; `nil` means forever.
    ///
    /// An older version that arrives after that is not recognised as stale. A sync token from
    /// before the oldest deleted mark has expired.
    package var deletedAge: Duration? = .seconds(90 * 86_400)

    /// How long an expired subscription stays, so that its owner can see why it is silent and renew
    /// it, and so that its pending deliveries are not withdrawn.
    package static let expiredAge = Duration.seconds(86_400)

    package init() {}
}

/// The numbers of rows that one round of pruning deleted.
package struct PrunedCounts: Sendable, Hashable {
    /// Dedupe keys whose window has passed, or of which a container had too many.
    package var dedupeKeys = 0
    /// Subscriptions that expired more than a day ago.
    package var expired = 0
    /// Ended versions of subscriptions and devices that no owed work needs.
    package var endedVersions = 0
    /// Past versions that ended before the first entry of the log.
    package var pastVersions = 0
    /// Log entries.
    package var logEntries = 0
    /// Receipt blocks.
    package var receiptBlocks = 0
    /// Client receipts.
    package var clientReceipts = 0
    /// Closed digests.
    package var digests = 0
    /// Throttle places that no longer count.
    package var throttlePlaces = 0
    /// Dead letters.
    ///
    /// The accounts keep their number.
    package var deadLetters = 0
    /// Parked changes.
    package var parkedChanges = 0
    /// Set-aside changes and ranges.
    package var quarantined = 0
    /// Last versions of records.
    package var shadows = 0
    /// Marks of deleted records.
    package var marks = 0

    /// Creates the counts of a round that found nothing.
    package init() {}
}
