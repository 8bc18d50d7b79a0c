import Metrics

/// What live clients cost, as numbers.
struct LiveMeter: Sendable {
    private let clients = Gauge(label: "belfry_live_clients")
    private let groups = Gauge(label: "belfry_live_groups")
    private let frames = Counter(label: "belfry_live_group_frames_total")
    private let readings = Counter(label: "belfry_live_readings_total")
    private let resumes = Counter(label: "belfry_live_resumes_total")
    private let resumeEntries = Counter(label: "belfry_live_resume_entries_total")

    func show(clients count: Int) { clients.record(count) }

    func show(groups count: Int) { groups.record(count) }

    func count(frames count: Int) { frames.increment(by: count) }

    func countReading() { readings.increment() }

    func countResume(entries: Int) {
        resumes.increment()
        resumeEntries.increment(by: entries)
    }

    func count(reset reason: LiveReset) {
        Counter(label: "belfry_live_resets_total", dimensions: [("reason", reason.rawValue)])
            .increment()
    }
}
