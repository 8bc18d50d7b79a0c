package import RelayModel

/// What becomes of a change that cannot be mapped.
package enum UnmappablePolicy: String, Sendable, Hashable, CaseIterable {
    /// It is refused: 422, or an error in its place within a batch.
    case reject
    /// It is kept with its reason and answered 2xx, because a refusal would stop the source.
    case park
}

/// The shapes of webhook bodies that the relay knows.
package enum SourcePreset: String, Sendable, Hashable, CaseIterable {
    /// The relay's own format.
    case belfry
    /// Debezium Server's HTTP sink with JSON.
    case debezium
    /// Supabase database webhooks.
    case supabase
    /// Hasura event triggers.
    case hasura
    /// CloudEvents 1.0, also as Debezium writes them.
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
    /// What the output plugin wal2json writes of PostgreSQL's log.
    case wal2json
    /// The payloads of Airtable's webhooks, and their pings.
    case airtable
    /// Records as CloudKit Web Services answer them.
    case cloudkit
    /// What a follower of PostgreSQL's own log posts (`belfry follow postgres`).
    case postgres
    /// Anything else, by JSON pointers.
    case custom

    /// What becomes of a change that cannot be mapped, unless the source says otherwise.
    ///
    /// A refusal stops Debezium's engine after its retries, and ten refusals switch an Appwrite
    /// webhook off. A follower would wait for ever, and so would whoever reads a log in its order
    /// and posts it on: of wal2json's slot, of a stream of DynamoDB, of MongoDB's change stream.
    var defaultPolicy: UnmappablePolicy {
        switch self {
        case .debezium, .appwrite, .postgres, .mongodb, .dynamodb, .wal2json: .park
        case .belfry, .supabase, .hasura, .cloudevents, .parse, .directus, .strapi, .minapp,
            .airtable, .cloudkit, .custom:
            .reject
        }
    }

    /// One MiB; Debezium's batches of up to 200 events, and whole transactions, get all that is
    /// allowed.
    var defaultBodyBytes: Int {
        self == .debezium || self == .postgres ? Limits.maximumWebhookBytes : 1024 * 1024
    }

    /// A minute; nothing for the relay's own format, whose senders say what is a repetition.
    var defaultContentWindow: Duration {
        self == .belfry || self == .postgres ? .zero : .seconds(60)
    }

    /// The key columns to look for, first those of the first list.
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

    /// Whether a row that is whole has all columns of its table, those without a value too.
    var tellsWholeRows: Bool { [.postgres, .supabase, .hasura].contains(self) }

    /// The body with which a webhook of this kind must be answered; `nil` leaves it to the server.
    ///
    /// Parse counts everything but this as a failure.
    package var requiredAnswer: JSONObject? {
        self == .parse ? ["success": true] : nil
    }
}
