package import RelayModel

extension SourcePreset {
    /// The header with the secret, for senders that cannot sign.
    package static let secretHeader = "X-Webhook-Secret"

    /// The verification that this preset's sender supports by itself, used unless the source says
    /// otherwise.
    package var usualVerification: JSONObject {
        switch self {
        // These senders cannot sign, but can send configured headers.
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

    /// Whether a table that the mapping names is used.
    ///
    /// The bodies of all other presets name their table.
    var heedsTable: Bool {
        switch self {
        case .minapp, .custom, .cloudevents, .dynamodb, .cloudkit: true
        case .belfry, .debezium, .supabase, .hasura, .parse, .mongodb, .appwrite, .directus,
            .strapi, .wal2json, .airtable, .postgres:
            false
        }
    }

    /// Whether updates always lack the row before, whatever the sender's settings.
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
    /// Where to find the secret, if the sender makes it.
    var placeOfSecret: String? {
        if case .combined(let signature) = self, signature.isStripes {
            return "Stripe makes the secret: it is the signing secret of the endpoint in its "
                + "dashboard"
        }
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

    /// Returns a secret made from `bytes`, in the form that the scheme requires.
    func secret(of bytes: [UInt8]) -> String {
        if case .standardWebhooks = self { return "whsec_" + Base64.encode(bytes) }
        return Hexadecimal.encode(bytes)
    }
}
