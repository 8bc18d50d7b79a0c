import RelayModel

/// A query with the grant that says who may read the records of its type that name no readers.
final class LiveShown: Sendable {
    let query: LiveQuery
    let grant: ReadGrant
    /// The parts of the query that are needed for each change.
    ///
    /// Copying the whole query would take longer than everything else done for a change.
    let traits: Traits

    /// What decides how the frames of a query are written.
    struct Traits: Sendable, Hashable {
        /// The fields that are sent; `nil` sends all.
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

    /// Returns this object's content for a client that declared the query as `other`.
    ///
    /// The query, which may take most of a megabyte, is shared with this object wherever possible.
    /// Only what the client is sent first, and whether the query ends after that, come from
    /// `other`.
    func declared(as other: LiveQuery) -> LiveShown {
        guard query.beginning != other.beginning || query.isOnce != other.isOnce else {
            return self
        }
        var query = query
        (query.beginning, query.isOnce) = (other.beginning, other.isOnce)
        return LiveShown(query, grant: grant)
    }
}
