// Matching: which saved subscriptions a change fires.
//
// Purpose: `SubscriptionIndex` finds them among a million, exactly as the reference evaluator
// would.
// Concurrency: any thread may read or write; see `SubscriptionIndex`. Nothing suspends.
// Life cycle: empty at first; filled from the registry; kept up to date by the follower of the log.
// Invariants: `docs/matching.md`. Unsafe memory: `Arena/`, and what reads it in place: `Postings/`,
// `Programs/`, `Vector/`, and a few files of `Index/`, `Planning/` and `Values/`.
