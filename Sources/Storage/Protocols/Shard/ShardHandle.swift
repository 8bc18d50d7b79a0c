package import RelayModel

/// All that the owner of a shard does with it.
///
/// It follows its log, settles what it owes, works its ranges, and keeps the snapshot of its state.
///
/// Exactly one process owns a shard at a time. A store has one shard, and is its handle for as long
/// as it is open.
package protocol ShardHandle:
    ShardLog, ShardProgress, FanoutRanges, StateSnapshots, StandbyVersions
{
    /// Bytes that no other shard of any store has: part of the identity of its deliveries, so that
    /// positions may be the same in two shards.
    ///
    /// They outlast restarts and changes of the owner, or what is sent again would be new.
    var shardIdentity: UUIDBytes { get }
}
