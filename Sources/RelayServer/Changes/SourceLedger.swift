import CoreMetrics
import Metrics
import RelayModel
import Storage
import Synchronization

/// What became of webhooks since the relay was started: counted for each source, with the last
/// refusals in full.
///
/// It is in memory: a refused webhook changed nothing, and who may cause refusals is not known, so
/// that they must cost nothing that lasts.
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

    /// What became of one source's webhooks.
    struct Tally: Sendable, Hashable {
        var accepted: UInt64 = 0
        var refused: UInt64 = 0
        /// Changes within accepted webhooks that say nothing to the relay.
        var ignored: UInt64 = 0
        var lastAccepted: Timestamp?
        var lastRefused: Timestamp?
        var lastReason: String?
    }

    /// What is to be logged of a refusal: nothing, or it and how many went unlogged before it.
    enum LogDecision: Sendable, Hashable {
        case silent
        case log(unlogged: Int)
    }

    private struct Meters {
        let accepted: Counter
        let refused: Counter
        let ignored: Counter
    }

    private struct Book {
        var tallies: [SourceName: Tally] = [:]
        var meters: [SourceName: Meters] = [:]
        /// The newest last.
        var refusals: [Refusal] = []
        var lastLogged: [SourceName?: Timestamp] = [:]
        var unlogged: [SourceName?: Int] = [:]
    }

    /// The refusals that are kept of one container.
    static let refusalsKept = 100
    /// The time between two lines of the log about one source.
    static let logPause = Duration.seconds(10)

    private let factory: any MetricsFactory
    private let books = Mutex<[ContainerKey: Book]>([:])

    init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// Notes a webhook of `source` that was accepted, with changes of it that were ignored.
    func noteAccepted(
        _ source: SourceName, of container: ContainerKey, ignored: Int, at now: Timestamp
    ) {
        let meters = books.withLock { books in
            var book = books[container] ?? Book()
            book.tallies[source, default: Tally()].accepted += 1
            book.tallies[source]?.ignored += UInt64(ignored)
            book.tallies[source]?.lastAccepted = now
            defer { books[container] = book }
            return self.meters(of: source, container, &book)
        }
        meters.accepted.increment()
        if ignored > 0 { meters.ignored.increment(by: ignored) }
    }

    /// Notes a webhook that was refused; `isKnown` says whether there is such a source.
    func noteRefused(
        _ refusal: Refusal, of container: ContainerKey, isKnown: Bool
    ) -> LogDecision {
        let (meters, decision) = books.withLock { books -> (Meters?, LogDecision) in
            var book = books[container] ?? Book()
            var meters: Meters?
            if isKnown {
                book.tallies[refusal.source, default: Tally()].refused += 1
                book.tallies[refusal.source]?.lastRefused = refusal.at
                book.tallies[refusal.source]?.lastReason = refusal.reason
                meters = self.meters(of: refusal.source, container, &book)
            }
            if book.refusals.count >= Self.refusalsKept { book.refusals.removeFirst() }
            book.refusals.append(refusal)
            // Names that nobody gave are logged as one, or each would be a line.
            let decision = Self.decide(isKnown ? refusal.source : nil, at: refusal.at, &book)
            books[container] = book
            return (meters, decision)
        }
        meters?.refused.increment()
        return decision
    }

    private static func decide(
        _ name: SourceName?, at now: Timestamp, _ book: inout Book
    ) -> LogDecision {
        if let last = book.lastLogged[name], now.duration(since: last) < logPause {
            book.unlogged[name, default: 0] += 1
            return .silent
        }
        book.lastLogged[name] = now
        return .log(unlogged: book.unlogged.removeValue(forKey: name) ?? 0)
    }

    private func meters(
        of source: SourceName, _ container: ContainerKey, _ book: inout Book
    ) -> Meters {
        if let known = book.meters[source] { return known }
        let place = [
            ("container", container.container.rawValue),
            ("environment", container.environment.rawValue), ("source", source.rawValue),
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
        book.meters[source] = meters
        return meters
    }

    /// Forgets a source that was deleted.
    func forget(_ source: SourceName, of container: ContainerKey) {
        books.withLock { books in
            books[container]?.tallies[source] = nil
            books[container]?.meters[source] = nil
            books[container]?.lastLogged[source] = nil
            books[container]?.unlogged[source] = nil
        }
    }

    /// What became of the webhooks of each source.
    func tallies(of container: ContainerKey) -> [SourceName: Tally] {
        books.withLock { $0[container]?.tallies ?? [:] }
    }

    /// The last refusals, the newest first.
    func refusals(of container: ContainerKey) -> [Refusal] {
        books.withLock { $0[container]?.refusals.reversed() ?? [] }
    }
}

extension SourceLedger.Tally {
    /// Takes over what became of another source's webhooks.
    mutating func add(_ other: Self) {
        accepted += other.accepted
        refused += other.refused
        ignored += other.ignored
        lastAccepted = [lastAccepted, other.lastAccepted].compactMap { $0 }.max()
        if let last = other.lastRefused, last >= lastRefused ?? last {
            lastRefused = last
            lastReason = other.lastReason
        }
    }

    /// The members that tell of it.
    var json: JSONObject {
        var object: JSONObject = [
            "accepted": .integer(Int64(clamping: accepted)),
            "refused": .integer(Int64(clamping: refused)),
            "ignored": .integer(Int64(clamping: ignored)),
        ]
        object["lastAccepted"] = lastAccepted.map { .string($0.iso8601) }
        object["lastRefused"] = lastRefused.map { .string($0.iso8601) }
        object["lastReason"] = lastReason.map { .string($0) }
        return object
    }
}
