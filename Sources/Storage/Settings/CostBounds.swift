package import RelayModel

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

extension CostBounds {
    /// Reads bounds, as an operator writes them and as they are stored; what is not named stays as
    /// it is in `before`, and `null` clears one.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a bound that is none.
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

    /// The bounds that are set; `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        object["predicate"] = perPredicate.map { .integer(Int64($0)) }
        object["user"] = perUser.map { .integer(Int64($0)) }
        object["recordType"] = perRecordType.map { .integer(Int64($0)) }
        return object.members.isEmpty ? nil : .object(object)
    }
}
