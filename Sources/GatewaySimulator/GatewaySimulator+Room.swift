// GatewaySimulator: a local APNs-like HTTP/2 gateway for `belfry dev`, for our tests, and for
// anybody's.
//
// The walk of a push: `StreamLimitTap` (bytes out) ─ NIOHTTP2Handler ─ `GatewayConnection` collects
// frames into pushes ─▶ `GatewayJudge` checks (`PushCheck`, `ConnectionAuthority`,
// `DeviceStanding`) and asks the script (`ScriptPlayer`) ─▶ `GatewayLedger` records ─▶ the
// connection carries the answer out.
//
// Concurrency: a connection lives on its event loop; ledger and judge are shared, each behind a
// lock that is held for a few lines. Nothing suspends and nothing blocks between a push and its
// answer.
//
// It imports no room of Belfry and knows nothing of subscriptions: whatever speaks APNs' provider
// API can be tested against it.
