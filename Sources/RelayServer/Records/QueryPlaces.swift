import RelayModel
import Storage

/// The places of queries of records, of which a limited number run at a time.
///
/// One user, or all callers that are not signed in together, may take half of a container's places.
/// If all places of the relay are taken, a container without a running query still gets one.
struct QueryPlaces: Sendable {
    private struct Running {
        var count = 0
        var parties: [QueryParty: Int] = [:]
    }

    /// The places of all containers together.
    let total: Int
    /// The number of running queries.
    private(set) var count = 0
    private var containers: [ContainerKey: Running] = [:]

    init(total: Int) {
        self.total = max(1, total)
    }

    /// Takes a place.
    ///
    /// - Throws: 429 that says which places are taken.
    mutating func enter(
        _ party: QueryParty, of container: ContainerKey, places: Int
    ) throws(APIError) {
        var running = containers[container] ?? Running()
        let share = party == .server ? places : max(1, places / 2)
        let own = running.parties[party, default: 0]
        if running.count >= places {
            throw .tooManyQueries("of the container", limit: places, use: running.count)
        }
        if own >= share {
            throw .tooManyQueries(
                party == .strangers ? "of callers who are not signed in" : "of the user",
                limit: share, use: own)
        }
        if count >= total, running.count > 0 {
            throw .tooManyQueries("of the relay", limit: total, use: count)
        }
        running.count += 1
        running.parties[party] = own + 1
        containers[container] = running
        count += 1
    }

    /// Gives a place back.
    mutating func leave(_ party: QueryParty, of container: ContainerKey) {
        guard var running = containers[container], let own = running.parties[party] else { return }
        count -= 1
        running.count -= 1
        running.parties[party] = own > 1 ? own - 1 : nil
        containers[container] = running.count > 0 ? running : nil
    }
}

extension APIError {
    /// Returns the refusal of a query because `use` queries are running already.
    static func tooManyQueries(_ whose: String, limit: Int, use: Int) -> APIError {
        APIError(
            .throttled,
            "\(use) queries \(whose) are already running; at most \(limit) are allowed at a time",
            retryAfter: 1,
            details: [
                "quota": "queries", "limit": .integer(Int64(limit)), "use": .integer(Int64(use)),
            ])
    }
}
