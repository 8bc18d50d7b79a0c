import RelayModel
import Storage

/// The rows of a user's subscriptions that the operations of one request need, read for several
/// operations at once; it belongs to one request.
///
/// No other request writes meanwhile. On PostgreSQL all other writers would wait for each single
/// query, and an atomic request has up to two hundred operations.
final class SubscriptionsTogether {
    /// The data that an operation needs to know.
    struct Asked {
        let id: SubscriptionID
        /// The content digest of the subscription to save; `nil` for a deletion.
        let digest: [UInt8]?
        /// The size of the subscription to save, in bytes.
        let bytes: Int
    }

    /// The maximum number of operations looked up together.
    ///
    /// It is low because a subscription may be as large as a request.
    private static let mostTogether = 16

    /// The operations that were not looked up yet, in order.
    private var pending: ArraySlice<Asked> = []
    /// The active rows by ID, and the active rows by content digest.
    private var named: [SubscriptionID: [Row]] = [:]
    private var same: [[UInt8]: [Row]] = [:]
    /// The IDs and digests written since they were looked up.
    private var written: Set<SubscriptionID> = []
    private var saved: Set<[UInt8]> = []
    private var hasEnded = false
    /// An upper bound of what all operations add.
    private(set) var most = Growth()
    /// Whether there is room for `most`; `nil` until it is known.
    var hasRoom: Bool?
    /// Whether the user has a disabled subscription; `nil` until it is known.
    var hasDisabled: Bool?

    /// Sets the operations that come next, in order.
    func expect(_ operations: [Asked]) {
        pending = operations[...]
        most = Growth(
            number: operations.count { $0.digest != nil },
            bytes: operations.reduce(0) { $0 + $1.bytes })
    }

    /// Returns the operations to look up together, the first of which is that with `id`, or none if
    /// `id` must be looked up alone.
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

    /// Takes the active rows with an ID.
    func note(_ rows: [Row], named id: SubscriptionID) {
        if !written.contains(id) { named[id] = rows }
    }

    /// Takes the active rows with a content digest.
    func note(_ rows: [Row], saying digest: [UInt8]) { same[digest] = rows }

    /// Returns the active rows with an ID, or `nil` if they are not known.
    func rows(named id: SubscriptionID) -> [Row]? { named[id] }

    /// Returns the active rows with a content digest, or `nil` if they are not known or may have
    /// changed.
    func rows(saying digest: [UInt8]) -> [Row]? {
        guard let rows = same[digest], !saved.contains(digest) else { return nil }
        return rows.isEmpty || !hasEnded ? rows : nil
    }

    /// Records that a subscription with this content digest was saved.
    func noteSaved(_ id: SubscriptionID, saying digest: [UInt8]) {
        forget(id)
        saved.insert(digest)
    }

    /// Records that a version ended.
    func noteEnd() { hasEnded = true }

    /// Removes what is known of a subscription that was written, so that it is looked up again.
    func forget(_ id: SubscriptionID) {
        named[id] = nil
        written.insert(id)
    }
}
