// Matching: finds the saved subscriptions that a change fires.
//
// Purpose: `SubscriptionIndex` finds them among millions, exactly as the reference evaluator would.
// Concurrency: any thread may read or write; see `SubscriptionIndex`. Nothing suspends.
// Life cycle: an index is empty at first, is filled from the registry, and is kept up to date by
// the follower of the log.
// Invariants: `docs/matching.md`. Unsafe memory is in `Arena/`, in the code that reads it in place
// (`Postings/`, `Programs/`, `Vector/`), and in a few files of `Index/`, `Planning/` and `Values/`.
