import RelayModel

/// The limits and waits of a store, with defaults that suit a relay on one machine.
package struct StoreSettings: Sendable, Hashable {
    /// The default path of the store's file, in the working directory.
    package static let usualPath = "belfry.sqlite"

    /// How long a commit waits for further requests while other callers are known to be writing.
    ///
    /// A lone caller never waits.
    package var commitDelay: Duration = .milliseconds(2)
    /// The number of changes beyond which a commit takes no further request.
    package var commitChanges = 256
    /// The same limit while several containers write, so that a container's change waits for at
    /// most this many changes of others.
    package var commitChangesBesideOthers = 64
    /// The size of the appended entries in bytes at which a commit ends while several containers
    /// write.
    ///
    /// Writing a megabyte of them takes some 10 ms, with the records that they change.
    package var commitBytesBesideOthers = 1024 * 1024
    /// The size of appended entries in bytes beyond which one request of a container has its
    /// commits apart from those of others, while several containers write.
    package var largeWriteBytes: Int { commitBytesBesideOthers / 4 }
    /// The maximum number of changes that wait to be written.
    ///
    /// Beyond it, appends are refused as overload.
    package var waitingChanges = 16_384
    /// The maximum bytes of changes that wait to be written.
    ///
    /// Beyond it, appends are refused as overload.
    package var waitingBytes = 64 * 1024 * 1024
    /// The number of newest entries that readers of the log get from memory.
    package var tailEntries = 4096
    /// The bytes of stored bodies up to which entries are kept in memory.
    package var tailBytes = 16 * 1024 * 1024
    /// How long a sender's position or delivery ID is remembered.
    ///
    /// Senders retry for three days (Stripe, Svix).
    package var dedupeWindow: Duration = .seconds(72 * 3600)
    /// How long a change without position or ID counts as a duplicate of one with equal content.
    package var contentDedupeWindow: Duration = .seconds(60)
    /// The quotas of containers that set none of their own.
    package var quotas = Quotas()
    /// The maximum number of notifications in one user's inbox.
    ///
    /// Beyond it, the oldest are dropped.
    package var inboxPerUser = 1000
    /// The free disk space below which appends are refused, so that settling can continue.
    package var diskReserveBytes: UInt64 = 64 * 1024 * 1024
    /// How long a statement waits for a lock that another connection holds.
    package var busyTimeout: Duration = .seconds(5)
    /// The number of connections that read beside the writer.
    package var readers = 5
    /// The number of further connections for long reads, which take turns on them.
    package var scanningReaders = 1
    /// The number of pages by which the write-ahead log grows before the writer makes a checkpoint.
    package var checkpointPages = 4000
    /// The same number while several containers write.
    ///
    /// More and smaller checkpoints keep no change waiting for long.
    ///
    /// A checkpoint of a thousand pages takes 25 ms or more, including its sync.
    package var checkpointPagesBesideOthers = 250
    /// The size of the write-ahead log in bytes beyond which the writer restarts it, as soon as
    /// readers allow that.
    package var walBytes = 64 * 1024 * 1024
    /// The size in bytes up to which a file is checked page by page at the start.
    ///
    /// In larger files only the tables on which every promise rests are checked.
    package var quickCheckBytes: UInt64 = 256 * 1024 * 1024
    /// The size in bytes up to which a file whose pages have no checksums yet is rewritten at the
    /// start.
    package var sealedBytes: UInt64 = 256 * 1024 * 1024
    /// The maximum number of receipts that one query looks through, newest first.
    package var scannedReceipts = 1_000_000
    /// The maximum number of pages of the file; 0 means no limit but the disk.
    package var maximumPages = 0

    /// Whether a store is created where there is none.
    package var creation = StoreCreation.whenMissing
    /// The vault that encrypts the secrets in the store.
    ///
    /// Without a key they are stored in plain form.
    package var secrets = SecretVault()

    package init() {}
}

/// What to do at a path without a store.
package enum StoreCreation: String, Sendable, Hashable, CaseIterable {
    /// Opening is refused, because the disk may not be mounted or the file may be lost.
    case never
    /// A new store is created, unless something is left of an old one.
    case whenMissing
}
