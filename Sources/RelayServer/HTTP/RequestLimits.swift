import RelayModel

/// The limits of requests.
package struct RequestLimits: Sendable, Hashable {
    /// The maximum size of a client's request body, in bytes.
    package var requestBytes: Int
    /// The maximum size of a webhook's body, in bytes.
    package var webhookBytes: Int
    /// The maximum number of operations in one request.
    package var operations: Int
    /// The record types that subscriptions may not name: patterns in which `*` matches any text.
    package var deniedRecordTypes: [String]
    /// The limits of predicates' costs.
    package var costs = CostLimits()

    /// Creates limits; the defaults are those of ``RelayModel/Limits``.
    package init(
        requestBytes: Int = Limits.maximumRequestBytes,
        webhookBytes: Int = Limits.maximumWebhookBytes,
        operations: Int = Limits.maximumOperationsPerRequest,
        deniedRecordTypes: [String] = ["_*"]
    ) {
        self.requestBytes = requestBytes
        self.webhookBytes = webhookBytes
        self.operations = operations
        self.deniedRecordTypes = deniedRecordTypes
    }
}

extension RequestLimits {
    /// Refuses a list that is too long for one request.
    ///
    /// - Throws: The error 400, as CloudKit does.
    func check(_ count: Int, of name: String) throws {
        guard count <= operations else {
            throw APIError(
                .badRequest, "\(name): \(count) in one request; allowed are \(operations)")
        }
    }
}

/// The limits of predicates' costs.
///
/// A predicate costs comparisons for an ordinary change, which is one of a record that the
/// predicate does not match, and it costs memory.
package struct CostLimits: Sendable, Hashable {
    /// Comparisons of one predicate.
    package var perPredicate = 500
    /// Comparisons of one user's predicates on one record type.
    package var perUser = 2000
    /// Comparisons of all predicates on one record type; equal ones count once.
    package var perRecordType = 20_000
    /// Memory of one user's large conditions, in megabytes; conditions of a few kilobytes do not
    /// count.
    package var userMegabytes = 64
    /// Memory of a container's large conditions, in megabytes; equal ones count once.
    package var containerMegabytes = 4096

    /// Creates limits of the usual size.
    package init() {}
}
