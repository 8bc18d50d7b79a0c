package import RelayModel

/// The maximum request rates of a container's keys and users, in requests per second.
///
/// A rate that is `nil` comes from the relay's configuration. The rate 0 means no limit.
package struct RequestRates: Sendable, Hashable {
    /// The rate of each key, and of each change source.
    package var key: Int?
    /// The rate of each user.
    package var user: Int?

    /// The largest rate that can be set.
    package static let largest = 1_000_000

    /// Creates rates.
    ///
    /// Those that are `nil` come from the configuration.
    package init(key: Int? = nil, user: Int? = nil) {
        self.key = key
        self.user = user
    }
}

extension RequestRates {
    /// Creates rates from JSON, in the form in which operators write them and the store keeps them.
    ///
    /// Rates that are not named stay as they are in `before`, and `null` clears a rate.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a number out of range.
    package init(
        _ reader: JSONReader, changing before: RequestRates = RequestRates()
    ) throws(JSONContractError) {
        try reader.allowOnly(["key", "user"])
        self.init(
            key: try Self.rate("key", reader, before.key),
            user: try Self.rate("user", reader, before.user))
    }

    private static func rate(
        _ name: String, _ reader: JSONReader, _ before: Int?
    ) throws(JSONContractError) -> Int? {
        if reader.object[name] == .null { return nil }
        guard let rate = try reader.integer(name) else { return before }
        guard (0...Int64(largest)).contains(rate) else {
            throw reader.failure(name, "must be 0 to \(largest) requests in a second")
        }
        return Int(rate)
    }

    /// The rates that are set, or `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        object["key"] = key.map { .integer(Int64($0)) }
        object["user"] = user.map { .integer(Int64($0)) }
        return object.members.isEmpty ? nil : .object(object)
    }
}
