import RelayModel

/// A query, and who may read the records of its type that name no readers.
final class LiveShown: Sendable {
    let query: LiveQuery
    let grant: ReadGrant
    /// What is asked of the query for each change: copying all of it would take longer than all
    /// else that is done there.
    let traits: Traits

    /// How what a query shows is told.
    struct Traits: Sendable, Hashable {
        /// The fields that travel; `nil` shows all.
        let keys: [String]?
        let form: LiveForm
        let showsBefore: Bool
        let isOrdered: Bool
        let isLimited: Bool
        let coalesces: Bool
    }

    init(_ query: LiveQuery, grant: ReadGrant) {
        self.query = query
        self.grant = grant
        traits = Traits(
            keys: query.desiredKeys, form: query.form, showsBefore: query.showsBefore,
            isOrdered: query.isOrdered, isLimited: query.limit != nil,
            coalesces: query.coalesces)
    }

    /// What a query shows that has been declared as `other`: all that it says is kept once, which
    /// may be most of a megabyte, and only what it is told first is its own.
    func declared(as other: LiveQuery) -> LiveShown {
        guard query.beginning != other.beginning || query.isOnce != other.isOnce else {
            return self
        }
        var query = query
        (query.beginning, query.isOnce) = (other.beginning, other.isOnce)
        return LiveShown(query, grant: grant)
    }
}
