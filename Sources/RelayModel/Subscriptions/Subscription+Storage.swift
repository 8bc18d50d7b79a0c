/// The form in which a subscription is stored: CloudKit's dictionary with the canonical text, in
/// the order in which ``Subscription/json`` writes it.
///
/// The readers are here and in ``SubscriptionBodies``. A golden file in the tests checks that they
/// can read everything that was ever written.
extension Subscription {
    /// The form in which the subscription is stored.
    package var storedForm: JSONObject { json }

    /// Returns the text in which the subscription is stored.
    ///
    /// - Throws: ``JSONContractError`` if it is too deep to be read again.
    package func storedText() throws(JSONContractError) -> String {
        try JSONValue.object(storedForm).storedText()
    }

    /// Reads what ``storedForm`` wrote, including the canonical text.
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
