import Metrics
import RelayModel

/// The metrics of live queries.
struct LiveMeter: Sendable {
    private let clients = Gauge(label: "belfry_live_clients")
    private let groups = Gauge(label: "belfry_live_groups")
    private let frames = Counter(label: "belfry_live_group_frames_total")
    private let readings = Counter(label: "belfry_live_readings_total")
    private let resumes = Counter(label: "belfry_live_resumes_total")
    private let resumeEntries = Counter(label: "belfry_live_resume_entries_total")
    private let members = Gauge(label: "belfry_live_members")
    private let bytes = Gauge(label: "belfry_live_result_bytes")
    private let lagging = Gauge(label: "belfry_live_lagging_clients")
    private let behind = Gauge(label: "belfry_live_behind_entries")
    private let change = Timer(label: "belfry_live_change_seconds")

    func show(clients count: Int) { clients.record(count) }

    func show(groups count: Int) { groups.record(count) }

    func count(frames count: Int) { frames.increment(by: count) }

    /// Records by how many entries the engine is behind the head of the log.
    func show(behind entries: UInt64) { behind.record(entries) }

    /// Records what is kept for results, and how many clients lag.
    func show(members count: Int, bytes size: Int, lagging clients: Int) {
        members.record(count)
        bytes.record(size)
        lagging.record(clients)
    }

    /// Records how long it took to work one change of a container that has live queries.
    func count(change took: Duration) {
        let (seconds, attoseconds) = took.components
        change.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// Counts a query that the engine has ended.
    func count(gone error: APIError) {
        let reason: String
        if case .string(let name)? = error.details["liveError"] {
            reason = name
        } else {
            reason = error.code.rawValue
        }
        Counter(label: "belfry_live_gone_total", dimensions: [("reason", reason)]).increment()
    }

    func countReading() { readings.increment() }

    func countResume(entries: Int) {
        resumes.increment()
        resumeEntries.increment(by: entries)
    }

    func count(reset reason: LiveReset, of queries: Int) {
        Counter(label: "belfry_live_resets_total", dimensions: [("reason", reason.rawValue)])
            .increment(by: queries)
    }
}
