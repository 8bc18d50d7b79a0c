import CoreMetrics
import Metrics
import RelayModel
import Storage
import Synchronization

/// The outcomes of webhooks since the relay was started: counts for each source, and the last
/// refusals in full.
///
/// It is only in memory: a refused webhook changed nothing, and anybody can cause refusals, so they
/// must not use lasting storage.
package final class SourceLedger: Sendable {
    /// A webhook that was refused.
    struct Refusal: Sendable, Hashable {
        let at: Timestamp
        let source: SourceName
        let address: String?
        let status: Int
        let reason: String
        let requestID: String
    }

    /// The outcomes of one source's webhooks.
    struct Tally: Sendable, Hashable {
        var accepted: UInt64 = 0
        var refused: UInt64 = 0
        /// Changes in accepted webhooks that the relay ignores.
        var ignored: UInt64 = 0
        /// Changes that were older than the relay's version of their records, and fired nothing.
        var older: UInt64 = 0
        /// How many of the `recent` changes were older.
        var recentOlder: UInt64 = 0
        /// The number of recent changes: the last few hundred.
        var recent: UInt64 = 0
        var lastAccepted: Timestamp?
        var lastRefused: Timestamp?
        var lastReason: String?
    }

    /// What to log about a refusal: nothing, or the refusal with the number of unlogged ones before
    /// it.
    enum LogDecision: Sendable, Hashable {
        case silent
        case log(unlogged: Int)
    }

    private struct Meters {
        let accepted: Counter
        let refused: Counter
        let ignored: Counter
    }

    private struct State {
        var tallies: [SourceName: Tally] = [:]
        var meters: [SourceName: Meters] = [:]
        /// The sources that have metrics of their own; a deleted source stays in the set.
        var metered: Set<SourceName> = []
        /// The last refusals, the newest last.
        var refusals: [Refusal] = []
        var lastLogged: [SourceName?: Timestamp] = [:]
        var unlogged: [SourceName?: Int] = [:]
    }

    /// The maximum number of refusals that are kept for one container.
    static let refusalsKept = 100
    /// The maximum number of sources of one container, deleted ones included, that have metrics of
    /// their own.
    ///
    /// Without the limit, a client that creates and deletes sources could fill all metric series.
    static let mostMetered = 500
    /// The shortest time between two log lines about one source.
    static let logPause = Duration.seconds(10)

    private let factory: any MetricsFactory
    private let states = Mutex<[ContainerKey: State]>([:])

    init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// Records an accepted webhook of `source`, with the outcomes of its changes.
    func noteAccepted(
        _ source: SourceName, of container: ContainerKey, _ results: ChangeResults,
        at now: Timestamp
    ) {
        let ignored = results.ignored
        let meters = states.withLock { states in
            var state = states[container] ?? State()
            state.tallies[source, default: Tally()].accepted += 1
            state.tallies[source]?.ignored += UInt64(ignored)
            state.tallies[source]?.note(older: results.older, applied: results.applied)
            state.tallies[source]?.lastAccepted = now
            defer { states[container] = state }
            return self.meters(of: source, container, &state)
        }
        meters.accepted.increment()
        if ignored > 0 { meters.ignored.increment(by: ignored) }
    }

    /// Records a refused webhook; `isKnown` says whether the source exists.
    func noteRefused(
        _ refusal: Refusal, of container: ContainerKey, isKnown: Bool
    ) -> LogDecision {
        let (meters, decision) = states.withLock { states -> (Meters?, LogDecision) in
            var state = states[container] ?? State()
            var meters: Meters?
            if isKnown {
                state.tallies[refusal.source, default: Tally()].refused += 1
                state.tallies[refusal.source]?.lastRefused = refusal.at
                state.tallies[refusal.source]?.lastReason = refusal.reason
                meters = self.meters(of: refusal.source, container, &state)
            }
            if state.refusals.count >= Self.refusalsKept { state.refusals.removeFirst() }
            state.refusals.append(refusal)
            // Unknown source names are logged as one source; otherwise each name would get its own
            // log line.
            let decision = Self.decide(isKnown ? refusal.source : nil, at: refusal.at, &state)
            states[container] = state
            return (meters, decision)
        }
        meters?.refused.increment()
        return decision
    }

    private static func decide(
        _ name: SourceName?, at now: Timestamp, _ state: inout State
    ) -> LogDecision {
        // A last line in the future comes from a clock that was set back, so it does not suppress
        // this one.
        if let last = state.lastLogged[name], last <= now, now.duration(since: last) < logPause {
            state.unlogged[name, default: 0] += 1
            return .silent
        }
        state.lastLogged[name] = now
        return .log(unlogged: state.unlogged.removeValue(forKey: name) ?? 0)
    }

    private func meters(
        of source: SourceName, _ container: ContainerKey, _ state: inout State
    ) -> Meters {
        if let known = state.meters[source] { return known }
        if state.metered.count < Self.mostMetered { state.metered.insert(source) }
        // No real source can have this name, because names must not begin with an underscore.
        let name = state.metered.contains(source) ? source.rawValue : "_other"
        let place = [
            ("container", container.container.rawValue),
            ("environment", container.environment.rawValue), ("source", name),
        ]
        func counter(_ outcome: String) -> Counter {
            Counter(
                label: "belfry_webhooks_total", dimensions: place + [("outcome", outcome)],
                factory: factory)
        }
        let meters = Meters(
            accepted: counter("accepted"), refused: counter("refused"),
            ignored: Counter(
                label: "belfry_webhook_changes_ignored_total", dimensions: place,
                factory: factory))
        state.meters[source] = meters
        return meters
    }

    /// Removes a source that was deleted.
    func forget(_ source: SourceName, of container: ContainerKey) {
        states.withLock { states in
            states[container]?.tallies[source] = nil
            states[container]?.meters[source] = nil
            states[container]?.lastLogged[source] = nil
            states[container]?.unlogged[source] = nil
        }
    }

    /// Returns the outcomes of the webhooks of each source.
    func tallies(of container: ContainerKey) -> [SourceName: Tally] {
        states.withLock { $0[container]?.tallies ?? [:] }
    }

    /// Returns the last refusals, the newest first.
    func refusals(of container: ContainerKey) -> [Refusal] {
        states.withLock { $0[container]?.refusals.reversed() ?? [] }
    }
}

extension SourceLedger.Tally {
    /// The number of recent changes above which both recent counts are halved, so that older ones
    /// weigh less.
    private static let mostRecent: UInt64 = 500

    /// Counts changes that were older than the relay's version of their records, and changes that
    /// were applied.
    mutating func note(older count: Int, applied: Int) {
        older += UInt64(count)
        recentOlder += UInt64(count)
        recent += UInt64(count + applied)
        while recent > Self.mostRecent {
            recentOlder /= 2
            recent /= 2
        }
    }

    /// Adds the outcomes of another source's webhooks.
    mutating func add(_ other: Self) {
        accepted += other.accepted
        refused += other.refused
        ignored += other.ignored
        older += other.older
        recentOlder += other.recentOlder
        recent += other.recent
        lastAccepted = [lastAccepted, other.lastAccepted].compactMap { $0 }.max()
        if let last = other.lastRefused, last >= lastRefused ?? last {
            lastRefused = last
            lastReason = other.lastReason
        }
    }

    /// The tally as members of a JSON object.
    var json: JSONObject {
        var object: JSONObject = [
            "accepted": .integer(Int64(clamping: accepted)),
            "refused": .integer(Int64(clamping: refused)),
            "ignored": .integer(Int64(clamping: ignored)),
            "older": .integer(Int64(clamping: older)),
        ]
        if recentOlder > 0, recent > 0 {
            object["olderPercent"] = .integer(Int64(clamping: recentOlder * 100 / recent))
        }
        object["lastAccepted"] = lastAccepted.map { .string($0.iso8601) }
        object["lastRefused"] = lastRefused.map { .string($0.iso8601) }
        object["lastReason"] = lastReason.map { .string($0) }
        return object
    }
}
