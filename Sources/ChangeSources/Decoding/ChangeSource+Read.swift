import RelayModel

extension ChangeSource {
    /// Reads one element of a body in the format of the preset.
    ///
    /// A preset returns changes, or the reason why there are none, or throws if it cannot
    /// understand the element. No preset guesses.
    func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        switch preset {
        case .belfry: try BelfryReading.read(item)
        case .debezium: try DebeziumReading.read(item)
        case .supabase: try SupabaseReading.read(item)
        case .hasura: try HasuraReading.read(item)
        case .cloudevents: try CloudEventReading.read(item)
        case .parse: try ParseReading.read(item)
        case .mongodb: try MongoDBReading.read(item)
        case .dynamodb: try DynamoDBReading.read(item)
        case .appwrite: try AppwriteReading.read(item)
        case .directus: try DirectusReading.read(item)
        case .strapi: try StrapiReading.read(item)
        case .minapp: try MinappReading.read(item)
        case .wal2json: try WAL2JSONReading.read(item)
        case .airtable: try AirtableReading.read(item)
        case .cloudkit: try CloudKitReading.read(item)
        case .postgres: try item.followedRow()
        case .custom: try CustomReading.read(item)
        }
    }
}
