package import RelayModel

/// The maximum cost, in comparisons, that conditions may add to a container's ordinary changes.
///
/// An ordinary change is one of a record that the conditions do not match.
///
/// Each bound is 1 to ``largest``. A bound that is `nil` comes from the relay's configuration.
package struct CostBounds: Sendable, Hashable {
    /// The maximum cost of one condition.
    package var perPredicate: Int?
    /// The maximum cost of one user's conditions for one record type.
    package var perUser: Int?
    /// The maximum cost of all conditions for one record type, with equal ones counted once.
    package var perRecordType: Int?

    /// The largest value that can be set.
    package static let largest = 10_000_000

    /// Creates bounds.
    ///
    /// Those that are `nil` come from the configuration.
    package init(perPredicate: Int? = nil, perUser: Int? = nil, perRecordType: Int? = nil) {
        self.perPredicate = perPredicate
        self.perUser = perUser
        self.perRecordType = perRecordType
    }
}

extension CostBounds {
    /// Creates bounds from JSON, in the form in which operators write them and the store keeps
    /// them.
    ///
    /// Bounds that are not named stay as they are in `before`, and `null` clears a bound.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a number out of range.
    package init(
        _ reader: JSONReader, changing before: CostBounds = CostBounds()
    ) throws(JSONContractError) {
        try reader.allowOnly(["predicate", "user", "recordType"])
        self.init(
            perPredicate: try Self.bound("predicate", reader, before.perPredicate),
            perUser: try Self.bound("user", reader, before.perUser),
            perRecordType: try Self.bound("recordType", reader, before.perRecordType))
    }

    private static func bound(
        _ name: String, _ reader: JSONReader, _ before: Int?
    ) throws(JSONContractError) -> Int? {
        if reader.object[name] == .null { return nil }
        guard let bound = try reader.integer(name) else { return before }
        guard (1...Int64(largest)).contains(bound) else {
            throw reader.failure(name, "must be 1 to \(largest) comparisons")
        }
        return Int(bound)
    }

    /// The bounds that are set, or `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        object["predicate"] = perPredicate.map { .integer(Int64($0)) }
        object["user"] = perUser.map { .integer(Int64($0)) }
        object["recordType"] = perRecordType.map { .integer(Int64($0)) }
        return object.members.isEmpty ? nil : .object(object)
    }
}
