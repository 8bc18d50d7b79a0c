import Metrics
import RelayModel
import Storage
import Synchronization

/// Bounds how many queries of records run at the same time, and what each may use.
///
/// Concurrency: a lock around the places; no other code is called while it is held.
package final class QueryAdmission: Sendable {
    /// The configurable limits.
    package struct Settings: Sendable, Hashable {
        /// The number of queries of all containers that run at a time.
        package var places = 64
        /// The number of queries of one container that run at a time, unless the container sets its
        /// own.
        package var placesOfContainer = 32
        /// The number of records that one query may look at.
        package var rows = 200_000
        /// The time that one query may take.
        package var time: Duration = .seconds(10)
        /// The number of rehearsals that run at a time.
        package var rehearsals = 2
        /// The time that a rehearsal with uploaded changes may take.
        package var uploadTime: Duration = .seconds(60)
        /// The time that a query reads before another one has its turn.
        package var turn: Duration = .milliseconds(10)

        package init() {}
    }

    private let places: Mutex<QueryPlaces>
    private let rehearsals: Mutex<RehearsalPlaces>
    private let settings: Settings
    private let clock: any Clock<Duration>
    private let running = Gauge(label: "belfry_queries_running")
    private let refused = Counter(label: "belfry_queries_refused_total")
    private let cut = Counter(label: "belfry_queries_cut_total")

    package init(settings: Settings = Settings(), clock: any Clock<Duration>) {
        places = Mutex(QueryPlaces(total: settings.places))
        rehearsals = Mutex(RehearsalPlaces(total: settings.rehearsals))
        self.settings = settings
        self.clock = clock
    }

    /// The number of running queries.
    package var count: Int { places.withLock { $0.count } }

    /// Runs a query if there is a place for it.
    ///
    /// - Throws: 429 if there is none; any error of `body`.
    func run<Value: Sendable>(
        _ party: QueryParty, of container: ContainerKey, places quota: Int? = nil,
        isUpload: Bool = false, _ body: (QueryAllowance) async throws -> Value
    ) async throws -> Value {
        let quota = quota ?? settings.placesOfContainer
        do {
            try places.withLock { places throws(APIError) in
                try places.enter(party, of: container, places: quota)
            }
            running.show { count }
        } catch {
            refused.increment()
            throw error
        }
        defer {
            places.withLock { $0.leave(party, of: container) }
            running.show { count }
        }
        return try await body(
            QueryAllowance(
                rows: settings.rows, time: isUpload ? settings.uploadTime : settings.time,
                turn: settings.turn, clock: clock,
                onCut: { [cut] in cut.increment() }))
    }
}

extension QueryAdmission {
    /// Runs a rehearsal if there is a place for it, among the rehearsals and among the queries.
    ///
    /// - Throws: 429 if there is none; any error of `body`.
    func rehearse<Value: Sendable>(
        _ party: QueryParty, of container: ContainerKey, places quota: Int? = nil,
        isUpload: Bool = false, _ body: (QueryAllowance) async throws -> Value
    ) async throws -> Value {
        do {
            try rehearsals.withLock { places throws(APIError) in
                try places.enter(party, of: container)
            }
        } catch {
            refused.increment()
            throw error
        }
        defer { rehearsals.withLock { $0.leave(party, of: container) } }
        return try await run(party, of: container, places: quota, isUpload: isUpload, body)
    }
}

/// What one query may use: a number of rows, and time.
struct QueryAllowance: Sendable {
    /// The bytes of stored text on one page.
    static let pageBytes = Limits.maximumPageBytes

    /// The number of rows that the query may look at.
    let rows: Int
    /// The time that the query may take.
    let time: Duration
    private let turn: Duration
    private let clock: any Clock<Duration>
    private let age: Stopwatch
    private let onCut: @Sendable () -> Void

    init(
        rows: Int, time: Duration, turn: Duration, clock: any Clock<Duration>,
        onCut: @escaping @Sendable () -> Void = {}
    ) {
        self.rows = rows
        self.time = time
        self.turn = turn
        self.clock = clock
        self.onCut = onCut
        age = clock.measureStart()
    }

    /// Whether the time is over.
    var isOver: Bool { age.elapsed() >= time }

    /// Begins a turn; returns a function that says whether the turn or the query's time is over.
    func beginTurn() -> @Sendable () -> Bool {
        let turnAge = clock.measureStart()
        return { [turn, age, time] in turnAge.elapsed() >= turn || age.elapsed() >= time }
    }

    /// Counts a query that ended because it ran out of rows or time.
    func noteCut() { onCut() }
}
