package import RelayModel

/// A configured webhook sender: how it proves itself, what its bodies mean, and what becomes of
/// those that cannot be read.
///
/// This room is pure: nothing in it suspends, logs or reads a clock. The server verifies first
/// (``verify(_:)``), on the raw bytes, and decodes then (``decode(_:)``).
package struct ChangeSource: Sendable, Hashable {
    /// The name, as it stands in the webhook's URL.
    package var name: SourceName
    /// The shape of the bodies.
    package var preset: SourcePreset
    /// How a webhook proves that it is this source's.
    package var verification: SourceVerification
    /// How the source's words become record types, record names and the rest.
    package var mapping: SourceMapping
    /// What becomes of a change that cannot be mapped.
    package var onUnmappable: UnmappablePolicy
    /// The longest body that is read, 1 byte to ``Limits/maximumWebhookBytes``.
    package var maximumBodyBytes: Int
    /// For how long two equal changes without any identifier count as one; zero for never.
    ///
    /// A longer window would swallow a real A→B→A→B sequence.
    package var contentWindow: Duration

    /// Creates a source with the defaults of its preset; set the rest on the value.
    package init(
        name: SourceName, preset: SourcePreset, verification: SourceVerification,
        mapping: SourceMapping = SourceMapping()
    ) {
        self.name = name
        self.preset = preset
        self.verification = verification
        self.mapping = mapping
        onUnmappable = preset.defaultPolicy
        maximumBodyBytes = preset.defaultBodyBytes
        contentWindow = preset.defaultContentWindow
    }
}

extension ChangeSource {
    /// Looks whether a webhook can be this source's, as far as that shows without its body.
    ///
    /// - Throws: ``VerificationError`` for whatever no body makes good.
    package func recognize(_ head: WebhookRequest) throws(VerificationError) {
        do {
            try verify(head)
        } catch {
            switch error {
            case .signatureMismatch, .malformedToken, .tokenAlgorithm, .tokenMismatch: return
            default: throw error
            }
        }
    }
}

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
    /// Anything else, by JSON pointers.
    case custom

    /// What becomes of a change that cannot be mapped, unless the source says otherwise.
    ///
    /// A refusal stops Debezium's engine after its retries, and ten refusals switch an Appwrite
    /// webhook off.
    var defaultPolicy: UnmappablePolicy {
        switch self {
        case .debezium, .appwrite: .park
        case .belfry, .supabase, .hasura, .cloudevents, .parse, .mongodb, .dynamodb, .directus,
            .strapi, .minapp, .custom:
            .reject
        }
    }

    /// One MiB; Debezium's batches of up to 200 events get all that is allowed.
    var defaultBodyBytes: Int {
        self == .debezium ? Limits.maximumWebhookBytes : 1024 * 1024
    }

    /// A minute; nothing for the relay's own format, whose senders say what is a repetition.
    var defaultContentWindow: Duration {
        self == .belfry ? .zero : .seconds(60)
    }

    /// The key columns to look for, first those of the first list.
    var defaultKeys: [[String]] {
        switch self {
        case .mongodb: [["_id"]]
        case .appwrite: [["$id"]]
        case .parse: [["objectId"]]
        case .strapi: [["documentId"], ["id"]]
        case .minapp, .debezium: [["id"], ["_id"]]
        case .belfry, .supabase, .hasura, .cloudevents, .dynamodb, .directus, .custom: [["id"]]
        }
    }

    /// The body with which a webhook of this kind must be answered; `nil` leaves it to the server.
    ///
    /// Parse counts everything but this as a failure.
    package var requiredAnswer: JSONObject? {
        self == .parse ? ["success": true] : nil
    }
}
