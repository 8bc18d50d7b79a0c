import RelayModel
import Storage

/// What the operations of one request ask of a user's subscriptions, asked for several of them at
/// once; it belongs to one request.
///
/// Nobody else writes meanwhile. On PostgreSQL each question would be waited for by all who write,
/// and a request that is one whole has two hundred operations.
final class SubscriptionsTogether {
    /// What an operation asks.
    struct Asked {
        let id: SubscriptionID
        /// The digest of what is to be saved; `nil` where nothing is.
        let digest: [UInt8]?
        /// The bytes of what is to be saved.
        let bytes: Int
    }

    /// How many operations are looked at together: a subscription may be as large as a request.
    private static let mostTogether = 16

    /// What is not asked for yet, in its order.
    private var pending: ArraySlice<Asked> = []
    /// The active ones, by their IDs, and those that say what is to be saved.
    private var named: [SubscriptionID: [Row]] = [:]
    private var same: [[UInt8]: [Row]] = [:]
    /// What was written since it was asked for.
    private var written: Set<SubscriptionID> = []
    private var saved: Set<[UInt8]> = []
    private var hasEnded = false
    /// No less than all operations add.
    private(set) var most = Growth()
    /// Whether there is room for all of that; `nil` until it is asked.
    var hasRoom: Bool?
    /// Whether any of the user's was disabled; `nil` until it is asked.
    var hasDisabled: Bool?

    /// Hears of the operations that come next, in their order.
    func expect(_ operations: [Asked]) {
        pending = operations[...]
        most = Growth(
            number: operations.count { $0.digest != nil },
            bytes: operations.reduce(0) { $0 + $1.bytes })
    }

    /// Those of which the rows are to be asked for together, of which `id` is the first; none where
    /// it is to be asked for by itself.
    func next(from id: SubscriptionID) -> ArraySlice<Asked> {
        guard !written.contains(id), let first = pending.firstIndex(where: { $0.id == id })
        else { return [] }
        let asked = pending[first...].prefix(Self.mostTogether)
        pending = pending[asked.endIndex...]
        named = [:]
        same = [:]
        saved = []
        hasEnded = false
        return asked
    }

    /// Takes what was found.
    func note(_ rows: [Row], named id: SubscriptionID) {
        if !written.contains(id) { named[id] = rows }
    }

    /// Takes what was found that says the same.
    func note(_ rows: [Row], saying digest: [UInt8]) { same[digest] = rows }

    /// The active row with an ID; `nil` if it is not known.
    func rows(named id: SubscriptionID) -> [Row]? { named[id] }

    /// The active row that says the same; `nil` if it is not known, or may be another one by now.
    func rows(saying digest: [UInt8]) -> [Row]? {
        guard let rows = same[digest], !saved.contains(digest) else { return nil }
        return rows.isEmpty || !hasEnded ? rows : nil
    }

    /// Notes that a subscription was saved, which says `digest`.
    func noteSaved(_ id: SubscriptionID, saying digest: [UInt8]) {
        forget(id)
        saved.insert(digest)
    }

    /// Notes that a version ended.
    func noteEnd() { hasEnded = true }

    /// Forgets what was known of a subscription that was written: it is asked for again.
    func forget(_ id: SubscriptionID) {
        named[id] = nil
        written.insert(id)
    }
}
