// GatewaySimulator: a local APNs-like HTTP/2 gateway for `belfry dev`, for our tests, and for the
// tests of other projects.
//
// The way of a push: `StreamLimitTap` (bytes out) ─ NIOHTTP2Handler ─ `GatewayConnection` collects
// frames into pushes ─▶ `GatewayJudge` checks (`PushCheck`, `ConnectionAuthority`,
// `DeviceStanding`) and asks the script (`ScriptPlayer`) ─▶ `GatewayLedger` records ─▶ the
// connection sends the answer.
//
// Concurrency: a connection lives on its event loop. Ledger and judge are shared, each behind a
// lock that is held for a few lines. Nothing suspends or blocks between a push and its answer.
//
// It imports no other room of Belfry and does not know subscriptions, so any sender that speaks
// APNs' provider API can be tested against it.
