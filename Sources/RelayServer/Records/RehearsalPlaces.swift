import RelayModel
import Storage

/// The places of rehearsals: one for each user, and a few for the relay.
///
/// Rehearsals read far more than queries do, so they need such a place in addition to one for
/// queries.
struct RehearsalPlaces: Sendable {
    private struct Holder: Hashable {
        let container: ContainerKey
        let party: QueryParty
    }

    /// The places of all containers together.
    let total: Int
    /// The number of running rehearsals.
    private(set) var count = 0
    private var users: Set<Holder> = []
    private var ofContainers: [ContainerKey: Int] = [:]

    init(total: Int) {
        self.total = max(1, total)
    }

    /// Takes a place; a container without a rehearsal gets one even if all places are taken.
    ///
    /// - Throws: 429 that says which places are taken.
    mutating func enter(_ party: QueryParty, of container: ContainerKey) throws(APIError) {
        let holder = Holder(container: container, party: party)
        guard !users.contains(holder) else {
            throw Self.refusal(
                "a rehearsal of the user is already running; at most one is allowed at a time", 1, 1
            )
        }
        guard count < total || ofContainers[container] == nil else {
            throw Self.refusal(
                "\(count) rehearsals are already running on the relay; at most \(total) are "
                    + "allowed at a time (queries.rehearsals)",
                total, count)
        }
        count += 1
        ofContainers[container, default: 0] += 1
        // Operators do not count as one user.
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
