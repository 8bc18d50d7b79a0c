import ArgumentParser
import Live
import RelayModel
import RelayServer
import Storage
import StorageSQL
import Synchronization

/// Records and live queries, as in rows 5 and 6 of the campaign.
struct BenchLiveLoad: Sendable {
    let container: ContainerKey
    let queries: Int

    /// The number of shelves.
    ///
    /// Each record lies on one shelf, and each window shows one shelf.
    private static let shelves = 400

    static var container: ContainerKey {
        get throws {
            ContainerKey(
                container: try named("iCloud.com.example.bench"), environment: .production)
        }
    }

    // MARK: Records

    /// Fills a store with records that lie on shelves, or belong to owners.
    func fill(_ store: RelayStore, _ records: Int, areOwned: Bool) async throws {
        try await store.save(
            ContainerSettings(key: container, topics: ["com.example.bench"]), at: World.real.now())
        let text = FieldValue.string(String(repeating: "x", count: 250))
        for first in stride(from: 0, to: records, by: 500) {
            let edits = try (first..<min(first + 500, records)).map { number in
                let fields: RecordFields =
                    areOwned
                    ? ["owner": .string("u\(number % queries)"), "text": text]
                    : [
                        "shelf": .integer(Int64(number % Self.shelves)),
                        "rank": .integer(Int64(number * 7919 % 100_000)),
                    ]
                var edit = RecordEdit(.forceReplace, try Self.record(number), type: try Self.type)
                edit.fields = fields
                return edit
            }
            try await modify(edits, in: store)
        }
    }

    /// Changes the ranks of records; if `leaves` is true, their shelves too, so that they leave
    /// their windows.
    func change(
        _ store: RelayStore, _ records: Int, _ changes: Int, leaves: Bool
    ) async throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<changes {
            let number = Int.random(in: 0..<records, using: &generator)
            let shelf =
                leaves ? Int.random(in: 0..<Self.shelves, using: &generator) : number % Self.shelves
            var edit = RecordEdit(.forceReplace, try Self.record(number), type: try Self.type)
            edit.fields = [
                "shelf": .integer(Int64(shelf)),
                "rank": .integer(.random(in: 0..<100_000, using: &generator)),
                "t": .integer(.random(in: 0..<1_000_000, using: &generator)),
            ]
            try await modify([edit], in: store)
        }
    }

    private func modify(_ edits: [RecordEdit], in store: RelayStore) async throws {
        let place = RecordPlace(container: container, database: .public, owner: nil)
        _ = try await store.modify(
            edits, in: place, by: RecordEditor(userID: nil, isServer: true),
            atomicity: .independent,
            additions: [RecordTypeDefinition(try Self.type, isInferred: true)],
            at: World.real.now())
    }

    // MARK: Queries

    /// Returns a query of the first 20 records of a shelf from some rank on.
    func window(_ number: Int) throws -> LiveQuery {
        let least = number / Self.shelves * 200
        var query = try result(number, "shelf == \(number % Self.shelves) AND rank >= \(least)")
        query.order = [LiveSortKey("rank")]
        query.limit = .first(20)
        return query
    }

    /// Returns a query of the records of one owner.
    func ofOwner(_ number: Int) throws -> LiveQuery {
        try result(number, "owner == \"u\(number)\"")
    }

    private func result(_ number: Int, _ condition: String) throws -> LiveQuery {
        LiveQuery(
            .result,
            Subscription(
                id: try Self.named("live"), container: container, database: .public,
                owner: try Self.named("u\(number)"),
                scope: .query(
                    SubscriptionQuery(
                        recordType: try Self.type, form: .predicate, source: .string(condition),
                        canonical: condition), zoneID: nil),
                firesOn: .all), form: LiveForm())
    }

    private static var type: RecordType { get throws { try named("Ranked") } }

    private static func record(_ number: Int) throws -> RecordID {
        RecordID(recordName: try named("Ranked\(number)"))
    }

    private static func named<Name: ValidatedIdentifier>(_ text: String) throws -> Name {
        guard let name = Name(rawValue: text) else { throw ExitCode.failure }
        return name
    }
}

/// Counts the first results that clients get, and discards everything.
final class BenchLiveHub: LiveHub {
    private struct State {
        var told = 0
        var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    func post(_ commands: [LiveCommand]) {
        var told = 0
        for command in commands {
            guard case .show(_, var result) = command else { continue }
            // A result makes its frames as they are taken, which is a part of the work.
            while result.next() != nil {}
            told += 1
        }
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.told += told
            guard let waiter = state.waiter, state.told >= waiter.count else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiter?.resume()
    }

    func room() async {}

    /// Suspends until `count` results have come.
    func reach(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.told < count { state.waiter = (count, continuation) }
                return state.told >= count
            }
            if isReached { continuation.resume() }
        }
    }
}
