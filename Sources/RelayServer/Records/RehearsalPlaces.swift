import RelayModel
import Storage

/// How many rehearsals run at a time: each user has one, and the relay a few.
///
/// They read far more than a query does, and so have places of their own beside those of queries.
struct RehearsalPlaces: Sendable {
    private struct Holder: Hashable {
        let container: ContainerKey
        let party: QueryParty
    }

    /// Places of all containers together.
    let total: Int
    /// Rehearsals that run.
    private(set) var count = 0
    private var users: Set<Holder> = []
    private var ofContainers: [ContainerKey: Int] = [:]

    init(total: Int) {
        self.total = max(1, total)
    }

    /// Takes a place; a container that has none gets one though all are taken.
    ///
    /// - Throws: 429 that says which places are taken.
    mutating func enter(_ party: QueryParty, of container: ContainerKey) throws(APIError) {
        let holder = Holder(container: container, party: party)
        guard !users.contains(holder) else {
            throw Self.refusal("a rehearsal of the user runs already; one runs at a time", 1, 1)
        }
        guard count < total || ofContainers[container] == nil else {
            throw Self.refusal(
                "\(count) rehearsals of the relay run already; allowed are \(total) at a time "
                    + "(queries.rehearsals)", total, count)
        }
        count += 1
        ofContainers[container, default: 0] += 1
        // Whoever administrates the relay is not one user.
        if case .user = party { users.insert(holder) }
    }

    /// Gives a place back.
    mutating func leave(_ party: QueryParty, of container: ContainerKey) {
        count -= 1
        let rest = ofContainers[container, default: 1] - 1
        ofContainers[container] = rest > 0 ? rest : nil
        users.remove(Holder(container: container, party: party))
    }

    private static func refusal(_ reason: String, _ limit: Int, _ use: Int) -> APIError {
        APIError(
            .throttled, reason, retryAfter: 2,
            details: [
                "quota": "rehearsals", "limit": .integer(Int64(limit)), "use": .integer(Int64(use)),
            ])
    }
}
