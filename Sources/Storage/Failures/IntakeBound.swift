/// What can make the relay refuse changes before it would lose any.
package enum IntakeBound: String, Sendable, Hashable, CaseIterable {
    /// Too many entries of the log are not settled.
    case logLag
    /// Too many deliveries wait to be tried again.
    case retries
    /// Too many subscriptions wait in ranges of huge fan-outs.
    case ranges
    /// The process uses too much memory.
    case memory
    /// The write-ahead log is too large: somebody has been reading for long.
    case wal
    /// The disk has less room than its reserve, or none.
    case disk
    /// Too much waits to be written.
    case waiting
    /// One container's changes come faster than they are followed, beside those of others.
    case share
}
