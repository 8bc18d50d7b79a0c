/// The form in which a subscription is kept: CloudKit's dictionary, canonical text included, in the
/// order in which ``Subscription/json`` writes it.
///
/// What reads it stands here and in ``SubscriptionBodies``; the golden file of the tests holds them
/// to what was ever written.
extension Subscription {
    /// The subscription as it is kept.
    package var storedForm: JSONObject { json }

    /// The text as which it is kept.
    ///
    /// - Throws: ``JSONContractError`` if it is too deep to be read again.
    package func storedText() throws(JSONContractError) -> String {
        try JSONValue.object(storedForm).storedText()
    }

    /// Reads what ``storedForm`` wrote, canonical text included.
    package init(stored json: JSONValue, of owner: SubscriptionOwner) throws {
        let reader = try JSONReader(json)
        try self.init(
            json: json, path: "",
            assignedID: try reader.require(
                "subscriptionID", try reader.identifier("subscriptionID")),
            owner: owner.user, container: owner.container, database: owner.database)
        if case .query(var query, let zoneID) = scope {
            let queryReader = try reader.require("query", try reader.reader("query"))
            query.canonical = try queryReader.string("canonicalPredicate") ?? ""
            scope = .query(query, zoneID: zoneID)
        }
    }
}
