package import RelayModel

/// How often a container's keys and users may come, in requests of a second.
///
/// What is `nil` is as the relay's configuration says; 0 is any number.
package struct RequestRates: Sendable, Hashable {
    /// The rate of each key, and of each change source.
    package var key: Int?
    /// The rate of each user.
    package var user: Int?

    /// The largest that can be set.
    package static let largest = 1_000_000

    /// Creates rates; without any, the configuration's count.
    package init(key: Int? = nil, user: Int? = nil) {
        self.key = key
        self.user = user
    }
}

extension RequestRates {
    /// Reads rates, as an operator writes them and as they are stored; what is not named stays as
    /// it is in `before`, and `null` clears one.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a number that is no rate.
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

    /// The rates that are set; `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        object["key"] = key.map { .integer(Int64($0)) }
        object["user"] = user.map { .integer(Int64($0)) }
        return object.members.isEmpty ? nil : .object(object)
    }
}
