package import RelayModel

/// All that the owner of a shard does with it: it follows the log, settles what is owed, works the
/// ranges, and keeps the snapshot of its state.
///
/// Exactly one process owns a shard at a time. A store has one shard, and is its handle while it is
/// open.
package protocol ShardHandle:
    ShardLog, ShardProgress, FanoutRanges, StateSnapshots, StandbyVersions
{
    /// Bytes that no other shard of any store has.
    ///
    /// They are part of the identity of the shard's deliveries, so two shards may use the same
    /// positions.
    ///
    /// They survive restarts and changes of the owner. Otherwise a repeated delivery would get a
    /// new ID.
    var shardIdentity: UUIDBytes { get }
}
