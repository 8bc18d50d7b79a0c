import RelayModel

/// What requests may ask for.
package struct RequestLimits: Sendable, Hashable {
    /// The body of a client's request, in bytes.
    package var requestBytes: Int
    /// The body of a webhook, in bytes.
    package var webhookBytes: Int
    /// Operations of one request.
    package var operations: Int
    /// Record types that subscriptions may not name: patterns in which `*` stands for anything.
    package var deniedRecordTypes: [String]
    /// What predicates may cost.
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
    /// Refuses a list that is longer than one request may be.
    ///
    /// - Throws: 400, as CloudKit does.
    func check(_ count: Int, of name: String) throws {
        guard count <= operations else {
            throw APIError(
                .badRequest, "\(name): \(count) in one request; allowed are \(operations)")
        }
    }
}

/// What predicates may add to an ordinary change, in comparisons: the change of a record that they
/// are not about; and what they may take in memory.
package struct CostLimits: Sendable, Hashable {
    /// One predicate.
    package var perPredicate = 500
    /// Those of one user on one record type.
    package var perUser = 2000
    /// All of one record type, equal ones counted once.
    package var perRecordType = 20_000
    /// Megabytes of memory that one user's conditions may take which take more than a few kilobytes
    /// each.
    package var userMegabytes = 64
    /// The same of a container's, equal ones counted once.
    package var containerMegabytes = 4096

    /// Creates limits of the usual size.
    package init() {}
}
