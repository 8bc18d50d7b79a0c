import RelayModel
import Storage

//  The calls about one container: its settings, keys, sources, schema, and user sign-in.

extension AdministrationCall {
    package static let listContainers = AdministrationCall(
        listing: "containers", AdministrationRows.container, at: "/admin/1/containers",
        "List containers; those of other shards are under elsewhere, by name.",
        besides: [
            .maybe(
                "elsewhere",
                .list(
                    of: .members([
                        .always("container", .text), .always("environment", .text),
                        .always("shard", .text),
                    ])))
        ])

    package static let showContainer = AdministrationCall("GET", container, "Show a container.")

    package static let createContainer = AdministrationCall(
        "PUT", container, "Create a container in the shard that you name, or else in one of them.",
        query: [.shard],
        body: .members(settings, example: ["topics": ["com.example.Art"]]),
        answers: [Answer(201, .object)])

    package static let setContainer = AdministrationCall(
        "PATCH", container, "Change the settings that are given.",
        body: .members(settings, example: ["expirationSeconds": 3600]))

    /// The members of a container's settings.
    static let settings: [JSONForm.Member] = [
        .maybe("topics", .list(of: .text)), .maybe("apns", .object.orNull()),
        .maybe("userTokens", .object.orNull()), .maybe("expirationSeconds", .count),
        .maybe("keepsInbox", .flag),
        .maybe("sessions", .object.orNull()),
        .maybe(
            "costLimits",
            .members(
                ["predicate", "user", "recordType"].map { .maybe($0, .number(from: 1).orNull()) }
            ).orNull()),
        .maybe(
            "quotas",
            .members(Quota.allCases.map { .maybe($0.rawValue, .count.orNull()) }).orNull()),
        .maybe(
            "rates", .members(["key", "user"].map { .maybe($0, .count.orNull()) }).orNull()),
    ]

    // MARK: Keys

    package static let listKeys = AdministrationCall(
        listing: "keys", AdministrationRows.accessKey, at: "\(container)/keys",
        "List access keys.")

    package static let createKey = AdministrationCall(
        "POST", "\(container)/keys", "Create an access key; its secret is shown once.",
        body: .members(
            [
                .always("kind", .words(of: AccessKey.Kind.self)), .maybe("label", .text),
                .maybe("publicKey", .text), .maybe("id", .text),
            ], example: ["kind": "bearer", "label": "server"]),
        answers: [
            Answer(201, AdministrationRows.accessKey.form.and([.maybe("secret", .text)]))
        ])

    package static let revokeKey = AdministrationCall(
        "DELETE", "\(container)/keys/{key}", "Revoke an access key.",
        answers: [Answer(200, .members([.always("id", .text), .always("revoked", .yes)]))])

    // MARK: Change sources

    package static let listSources = AdministrationCall(
        listing: "sources", AdministrationRows.source, at: "\(container)/sources",
        "List change sources.")

    package static let showSource = AdministrationCall(
        "GET", "\(container)/sources/{source}", "Show a change source.")

    package static let setSource = AdministrationCall(
        "PUT", "\(container)/sources/{source}",
        "Create or change a change source. What you do not name stays as it was. A secret that the "
            + "relay makes is shown once.",
        body: .form(
            .object, example: ["preset": "belfry", "verification": ["scheme": "none"]]),
        answers: [Answer(200, .object), Answer(201, .object, "The source is new.")])

    package static let rotateSource = AdministrationCall(
        "POST", "\(container)/sources/{source}/rotate",
        "Give a change source a new secret, shown once; the previous one is accepted for a while.",
        body: .members(
            [.maybe("secret", .text), .maybe("graceSeconds", .number(from: 0, to: 2_592_000))],
            example: ["graceSeconds": 3600]),
        answers: [Answer(200, .object)])

    package static let listRefusals = AdministrationCall(
        listing: "refusals", AdministrationRows.refusal, at: "\(container)/refusedWebhooks",
        "List the last webhooks that were refused, the newest first.")

    package static let deleteSource = AdministrationCall(
        "DELETE", "\(container)/sources/{source}", "Delete a change source.",
        answers: [
            Answer(
                200,
                .members([
                    .always("name", .text), .always("deleted", .yes), .maybe("left", .text),
                ]))
        ])

    // MARK: Schema

    private static let schemaText = JSONForm.members([.always("text", .text)])

    package static let showSchema = AdministrationCall(
        "GET", "\(container)/schema",
        "Show the schema; with format=text, in CloudKit's schema language.",
        query: [.maybe("format", .words(["json", "text"]))],
        answers: [
            Answer(
                200,
                JSONForm(["anyOf": [JSONForm.component("Schema").schema, schemaText.schema]]))
        ], list: List(member: "recordTypes", columns: schemaColumns))

    package static let replaceSchema = AdministrationCall(
        "PUT", "\(container)/schema", "Replace the schema with another one.",
        body: .form(
            JSONForm([
                "oneOf": [
                    [
                        "type": "object",
                        "properties": [
                            "recordTypes": [
                                "type": "array",
                                "items": JSONForm.component("RecordType").schema, "maxItems": 3,
                            ],
                            "roles": JSONForm.list(of: .component("RoleName")).schema,
                        ],
                        "required": ["recordTypes"],
                    ], schemaText.schema,
                ]
            ]),
            example: [
                "text": .string(
                    "DEFINE SCHEMA RECORD TYPE Artwork (title STRING QUERYABLE SORTABLE, "
                        + "year INT64 QUERYABLE SORTABLE, GRANT READ TO \"_world\", "
                        + "GRANT CREATE TO \"_icloud\", GRANT WRITE TO \"_creator\");")
            ]),
        answers: [Answer(200, .component("Schema"))],
        list: List(member: "recordTypes", columns: Array(schemaColumns.prefix(2))))

    private static let schemaColumns: [AdministrationColumn] = [
        .init("record type", "name"), .init("kept", "shadow"), .init("inferred", "inferred"),
        .init("fields", "fields"),
    ]

    package static let keepRecords = AdministrationCall(
        "POST", "\(container)/schema/recordTypes/{recordType}",
        "Set whether records of a type are kept in the shadow.",
        body: .members([.always("shadow", .flag)], example: ["shadow": true]),
        answers: [Answer(200, .component("RecordType"))])
}
