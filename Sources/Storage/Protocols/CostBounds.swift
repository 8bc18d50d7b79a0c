/// What conditions may add to a container's ordinary changes, in comparisons: the change of a
/// record that they are not about.
///
/// Each is 1 to ``largest``; what is `nil` is as the relay's configuration says.
package struct CostBounds: Sendable, Hashable {
    /// One condition.
    package var perPredicate: Int?
    /// Those of one user on one record type.
    package var perUser: Int?
    /// All of one record type, equal ones counted once.
    package var perRecordType: Int?

    /// The largest that can be set.
    package static let largest = 10_000_000

    /// Creates bounds; without any, the configuration's count.
    package init(perPredicate: Int? = nil, perUser: Int? = nil, perRecordType: Int? = nil) {
        self.perPredicate = perPredicate
        self.perUser = perUser
        self.perRecordType = perRecordType
    }
}
