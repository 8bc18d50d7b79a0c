import RelayModel
import Storage

extension CostBounds {
    /// Reads the bounds that a container sets; those that are not named are the configuration's.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(["predicate", "user", "recordType"])
        self.init(
            perPredicate: try Self.bound("predicate", reader),
            perUser: try Self.bound("user", reader),
            perRecordType: try Self.bound("recordType", reader))
    }

    private static func bound(
        _ name: String, _ reader: JSONReader
    ) throws(JSONContractError) -> Int? {
        guard let bound = try reader.integer(name) else { return nil }
        guard (1...Int64(largest)).contains(bound) else {
            throw reader.failure(name, "must be 1 to \(largest) comparisons")
        }
        return Int(bound)
    }

    /// The bounds that are set; `nil` if none is.
    var shownJSON: JSONValue? {
        var object = JSONObject()
        object["predicate"] = perPredicate.map { .integer(Int64($0)) }
        object["user"] = perUser.map { .integer(Int64($0)) }
        object["recordType"] = perRecordType.map { .integer(Int64($0)) }
        return object.members.isEmpty ? nil : .object(object)
    }
}

extension CostLimits {
    /// These limits, as far as a container does not set its own.
    func narrowed(by bounds: CostBounds) -> CostLimits {
        var limits = self
        limits.perPredicate = bounds.perPredicate ?? perPredicate
        limits.perUser = bounds.perUser ?? perUser
        limits.perRecordType = bounds.perRecordType ?? perRecordType
        return limits
    }
}
