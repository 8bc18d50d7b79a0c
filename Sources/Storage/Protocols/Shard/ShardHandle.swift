/// All that the owner of a shard does with it.
///
/// It follows its log, settles what it owes, works its ranges, and keeps the snapshot of its state.
///
/// Exactly one process owns a shard at a time. An engine on one file grants one handle, forever.
package protocol ShardHandle:
    ShardLog, ShardProgress, FanoutRanges, StateSnapshots, ActiveVersions
{}
