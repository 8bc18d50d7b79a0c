package import RelayModel

/// What happens to a change that cannot be mapped.
package enum UnmappablePolicy: String, Sendable, Hashable, CaseIterable {
    /// It is refused: with status 422, or with an error in its place within a batch.
    case reject
    /// It is stored with its reason and answered with 2xx, because a refusal would stop the source.
    case park
}

/// The known shapes of webhook bodies.
package enum SourcePreset: String, Sendable, Hashable, CaseIterable {
    /// The relay's own format.
    case belfry
    /// Debezium Server's HTTP sink with JSON.
    case debezium
    /// Supabase database webhooks.
    case supabase
    /// Hasura event triggers.
    case hasura
    /// CloudEvents 1.0, including those that Debezium writes.
    case cloudevents
    /// Parse Server's afterSave and afterDelete hooks.
    case parse
    /// MongoDB change events.
    case mongodb
    /// DynamoDB stream records.
    case dynamodb
    /// Appwrite webhooks.
    case appwrite
    /// Directus flows with the documented template.
    case directus
    /// Strapi webhooks.
    case strapi
    /// Minapp trigger webhooks.
    case minapp
    /// The output of the plugin wal2json for PostgreSQL's log.
    case wal2json
    /// The payloads of Airtable's webhooks, and their pings.
    case airtable
    /// Records as CloudKit Web Services return them.
    case cloudkit
    /// The rows that a follower of PostgreSQL's own log posts (`belfry follow postgres`).
    case postgres
    /// Any other JSON, read by JSON pointers.
    case custom

    /// What happens to a change that cannot be mapped, unless the source says otherwise.
    ///
    /// A refusal stops Debezium's engine after its retries, and ten refusals disable an Appwrite
    /// webhook. A follower would wait forever. So would a program that posts a log in its order,
    /// such as wal2json's slot, a DynamoDB stream or MongoDB's change stream.
    var defaultPolicy: UnmappablePolicy {
        switch self {
        case .debezium, .appwrite, .postgres, .mongodb, .dynamodb, .wal2json: .park
        case .belfry, .supabase, .hasura, .cloudevents, .parse, .directus, .strapi, .minapp,
            .airtable, .cloudkit, .custom:
            .reject
        }
    }

    /// The default maximum size of a body: one MiB, or the highest allowed size for Debezium's
    /// batches of up to 200 events and for whole transactions.
    var defaultBodyBytes: Int {
        self == .debezium || self == .postgres ? Limits.maximumWebhookBytes : 1024 * 1024
    }

    /// The default window for equal content: a minute, or zero for the relay's own format and for
    /// followers, whose senders identify repetitions.
    var defaultContentWindow: Duration {
        self == .belfry || self == .postgres ? .zero : .seconds(60)
    }

    /// The key columns to look for: the first list of which all columns are present.
    var defaultKeys: [[String]] {
        switch self {
        case .mongodb: [["_id"]]
        case .appwrite: [["$id"]]
        case .parse: [["objectId"]]
        case .strapi: [["documentId"], ["id"]]
        case .minapp, .debezium: [["id"], ["_id"]]
        case .belfry, .supabase, .hasura, .cloudevents, .dynamodb, .directus, .wal2json,
            .airtable, .cloudkit, .postgres, .custom:
            [["id"]]
        }
    }

    /// Whether a whole row has all columns of its table, including those without a value.
    var tellsWholeRows: Bool { [.postgres, .supabase, .hasura].contains(self) }

    /// The body that a webhook of this preset must be answered with; `nil` leaves it to the server.
    ///
    /// Parse counts any other answer as a failure.
    package var requiredAnswer: JSONObject? {
        self == .parse ? ["success": true] : nil
    }
}
