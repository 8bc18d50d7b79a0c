/// The limits at which the relay refuses changes, before it would lose any.
package enum IntakeBound: String, Sendable, Hashable, CaseIterable {
    /// Too many entries of the log are not settled.
    case logLag
    /// Too many deliveries wait to be retried.
    case retries
    /// Too many subscriptions wait in ranges of very large fan-outs.
    case ranges
    /// The process uses too much memory.
    case memory
    /// The write-ahead log is too large, because a reader has been open for long.
    case wal
    /// The tables and indexes in the database are too large.
    case database
    /// The disk has less free space than its reserve, or none.
    case disk
    /// Too much waits to be written.
    case waiting
    /// One container's changes arrive faster than they are followed, and take more than its share.
    case share
}
