package import RelayModel

extension SourcePreset {
    /// The header in which senders without a signature of their own show the secret.
    package static let secretHeader = "X-Webhook-Secret"

    /// How this preset's sender proves itself, where a source does not say otherwise: by what it
    /// can do by itself.
    package var usualVerification: JSONObject {
        switch self {
        // They sign nothing, and send what headers they are told to.
        case .supabase, .hasura, .directus, .strapi:
            ["scheme": "header", "header": .string(Self.secretHeader)]
        case .parse: ["scheme": "header", "header": "X-Parse-Webhook-Key"]
        case .appwrite: ["scheme": "appwrite"]
        case .airtable: ["scheme": "airtable"]
        case .minapp: ["scheme": "minapp"]
        case .belfry, .debezium, .cloudevents, .mongodb, .dynamodb, .wal2json, .cloudkit,
            .postgres, .custom:
            ["scheme": "standardWebhooks"]
        }
    }

    /// Whether a table that the mapping names counts: bodies of all others name theirs.
    var heedsTable: Bool {
        switch self {
        case .minapp, .custom, .cloudevents, .dynamodb, .cloudkit: true
        case .belfry, .debezium, .supabase, .hasura, .parse, .mongodb, .appwrite, .directus,
            .strapi, .wal2json, .airtable, .postgres:
            false
        }
    }

    /// Whether updates come without the row before them, however the sender is set up.
    package var neverHasBeforeImages: Bool {
        switch self {
        case .directus, .strapi, .appwrite, .minapp, .cloudkit: true
        case .belfry, .debezium, .supabase, .hasura, .cloudevents, .parse, .mongodb, .dynamodb,
            .wal2json, .airtable, .postgres, .custom:
            false
        }
    }
}

extension VerificationScheme {
    /// Where the secret is to be found, if it is the sender that makes it.
    var placeOfSecret: String? {
        guard case .signature(let recipe) = self else { return nil }
        if recipe == .airtable {
            return "Airtable makes the secret: it is macSecretBase64 in its answer to the call "
                + "that creates the webhook"
        }
        if recipe == .appwrite(url: recipe.url) {
            return "Appwrite makes the secret: it is the signature key of the webhook in its "
                + "console"
        }
        if recipe.algorithm == .ed25519 {
            return "the secret is the public half of the sender's key"
        }
        return nil
    }

    /// A secret made of `bytes`, in the form that the scheme wants.
    func secret(of bytes: [UInt8]) -> String {
        if case .standardWebhooks = self { return "whsec_" + Base64.encode(bytes) }
        return Hexadecimal.encode(bytes)
    }
}
