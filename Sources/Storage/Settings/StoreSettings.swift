import RelayModel

/// How a store works: bounds and waits, each with a default that suits a relay on one machine.
package struct StoreSettings: Sendable, Hashable {
    /// The file of a store of which nobody said where it is, in the working directory.
    package static let usualPath = "belfry.sqlite"

    /// How long a commit waits for company while other callers are known to be writing.
    ///
    /// A lone caller never waits.
    package var commitDelay: Duration = .milliseconds(2)
    /// The changes in a commit beyond which it takes no further request.
    package var commitChanges = 256
    /// The same while several containers write: another's change waits for no more than these.
    package var commitChangesBesideOthers = 64
    /// The changes that may wait to be written; beyond, appends are refused as overload.
    package var waitingChanges = 16_384
    /// The bytes of changes that may wait to be written; beyond, appends are refused as overload.
    package var waitingBytes = 64 * 1024 * 1024
    /// How many of the last entries are handed to readers of the log from memory.
    package var tailEntries = 4096
    /// The bytes of stored bodies up to which entries are kept in memory.
    package var tailBytes = 16 * 1024 * 1024
    /// How long a source position or delivery ID of a sender is remembered.
    ///
    /// Senders retry for three days (Stripe, Svix).
    package var dedupeWindow: Duration = .seconds(72 * 3600)
    /// How long a change without position and ID counts as the same as one with equal content.
    package var contentDedupeWindow: Duration = .seconds(60)
    /// What containers may have that set nothing of their own.
    package var quotas = Quotas()
    /// The notifications in one user's inbox; beyond, the oldest are dropped.
    package var inboxPerUser = 1000
    /// Appends are refused while the disk has less room than this, so that settling goes on.
    package var diskReserveBytes: UInt64 = 64 * 1024 * 1024
    /// How long a statement waits for a lock that another connection holds.
    package var busyTimeout: Duration = .seconds(5)
    /// Connections that read beside the writer.
    package var readers = 5
    /// Further connections, for those who read much; they take turns on them.
    package var scanningReaders = 1
    /// The pages by which the write-ahead log grows before the writer checkpoints.
    package var checkpointPages = 4000
    /// The same while several containers write: smaller checkpoints, of which there are more, keep
    /// nobody's change waiting for long.
    ///
    /// One of a thousand pages takes 25 ms and more, with its sync.
    package var checkpointPagesBesideOthers = 250
    /// The writer starts the write-ahead log anew when it has more bytes than this, as soon as
    /// readers let it.
    package var walBytes = 64 * 1024 * 1024
    /// Files up to this size are checked page by page at start; of larger ones only the tables on
    /// which every promise rests.
    package var quickCheckBytes: UInt64 = 256 * 1024 * 1024
    /// Files up to this size, whose pages have no checksums yet, are written anew at the start.
    package var sealedBytes: UInt64 = 256 * 1024 * 1024
    /// The most receipts that one query looks through, the newest first.
    package var scannedReceipts = 1_000_000
    /// The most pages that the file may have; 0 is no bound but the disk's.
    package var maximumPages = 0

    /// Whether a store is made where there is none.
    package var creation = StoreCreation.whenMissing
    /// What encrypts the secrets in the file; without a key they lie there as they are.
    package var secrets = SecretVault()

    package init() {}
}

/// What becomes of a path at which there is no store.
package enum StoreCreation: String, Sendable, Hashable, CaseIterable {
    /// It is refused: the disk may not be mounted, or the file may be lost.
    case never
    /// A new store is made, unless something is left of an old one.
    case whenMissing
}
