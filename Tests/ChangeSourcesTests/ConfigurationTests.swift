import RelayModel
import Testing

@testable import ChangeSources

/// Returns the error of reading a source from `json`, or "fine".
private func outcome(_ json: String) -> String {
    do {
        _ = try ChangeSource(json: JSONValue(parsing: json))
        return "fine"
    } catch {
        return "\(error)"
    }
}

private let head = #""name": "shop", "preset": "debezium""#
private let open = #""verification": {"scheme": "none"}"#
private let long = String(repeating: "x", count: 1025)
private let manyTables = (0...1000).map { "\"t\($0)\": \"T\"" }.joined(separator: ", ")
private let signed = #""scheme": "signature", "algorithm": "hmac-sha1", "output": "hex""#
private let urls = Array(repeating: #""url""#, count: 32).joined(separator: ", ")

@Suite struct ConfigurationTests {
    @Test(arguments: [
        "{\(head), \(open)}",
        """
        {"name": "s", "preset": "belfry", "onUnmappable": "park", "maximumBodyBytes": 1,
         "contentWindowSeconds": 3600, "verification": {"scheme": "standardWebhooks",
         "toleranceSeconds": 60, "secrets": [
          {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "until": 1700000000000},
          {"secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}]}}
        """,
        """
        {"name": "s", "preset": "custom",
         "verification": {"scheme": "signature", "header": "X-Sig", "prefix": "v=", "output": "hex",
          "parts": [{"literal": "a"}, {"header": "X-Time"}, "url", "body", "secret"],
          "algorithm": "sha256", "timestampHeader": "X-Time", "url": "https://a.example/",
          "secrets": [{"secret": "k"}]},
         "mapping": {"recordTypes": {"a": "A"}, "recordTypeTemplate": "{schema}_{table}",
          "key": "id", "keys": {"b": ["x", "y"]}, "zone": {"column": "z"},
          "database": {"constant": "shared"}, "owner": {"pointer": "/o~1p/~0"},
          "origin": {"device": {"header": "X-D"}, "user": [{"column": "u"}]},
          "readers": {"column": "r"}, "version": {"column": "v"}, "occurredAt": {"column": "t"},
          "columns": {"t": "timestamp"}, "ignoredTables": ["x", "y"], "dedupe": [{"column": "v"}],
          "beforeImage": "keys", "order": "arrival", "table": {"header": "X-Table"},
          "tables": {"a": {"owner": null, "zone": {"column": "y"}, "origin": null},
           "s.b": {"origin": {"user": {"column": "w"}}}, "c": {"origin": {"device": null}},
           "d": {"origin": {"device": [], "user": null}}},
          "body": {"items": "/i", "operation": {"pointer": "/op"}, "operations": {"Neu": "create"},
           "before": "/b", "after": "", "afterCompleteness": "partial"}}}
        """,
        #"{"name": "s", "preset": "supabase", "verification": {"scheme": "header", "#
            + #""header": "X-K", "secrets": [{"secret": "k"}]}}"#,
        #"{"name": "s", "preset": "debezium", "verification": {"scheme": "bearer", "#
            + #""secrets": [{"secret": "k"}]}}"#,
        #"{"name": "s", "preset": "minapp", "verification": {"scheme": "minapp", "#
            + #""secrets": [{"secret": "k"}]}, "mapping": {"table": {"constant": "t"}}}"#,
        #"{"name": "s", "preset": "appwrite", "verification": {"scheme": "#
            + #""appwrite", "url": "https://a.example/", "secrets": [{"secret": "k"}]}}"#,
        #"{"name": "s", "preset": "appwrite", "verification": {"scheme": "#
            + #""appwrite", "secrets": [{"secret": "k"}]}}"#,
        #"{"name": "s", "preset": "airtable", "verification": {"scheme": "#
            + #""airtable", "secrets": [{"secret": "AAEC"}]}}"#,
    ])
    func `a stored source reads as it was stored`(text: String) throws {
        let source = try ChangeSource(json: JSONValue(parsing: text))
        let again = try ChangeSource(json: JSONValue(parsing: JSONValue.object(source.json).utf8))
        #expect(again == source)
    }

    @Test(arguments: [
        ("{\(head)}", "verification: is required"),
        ("{\(open)}", "preset: is required"),
        (
            "{\(head), \(open), \"secret\": 1}",
            "secret: unknown field; allowed are name, preset, "
                + "verification, mapping, onUnmappable, maximumBodyBytes, contentWindowSeconds, "
                + "follow"
        ),
        ("{\(head), \(open), \"maximumBodyBytes\": 0}", "maximumBodyBytes: must be 1 to 4194304"),
        (
            "{\(head), \(open), \"maximumBodyBytes\": 4194305}",
            "maximumBodyBytes: must be 1 to 4194304"
        ),
        (
            "{\(head), \(open), \"contentWindowSeconds\": 3601}",
            "contentWindowSeconds: must be 0 to 3600"
        ),
        (
            "{\(head), \(open), \"onUnmappable\": \"drop\"}",
            "onUnmappable: \"drop\" is unknown; allowed are \"reject\", \"park\""
        ),
        (
            "{\(head), \"verification\": {\"scheme\": \"none\", \"secrets\": []}}",
            "verification.secrets: unknown field; allowed are scheme"
        ),
        (
            "{\(head), \"verification\": {\"scheme\": \"bearer\", \"secrets\": []}}",
            "verification.secrets: one secret is required; two are allowed while one replaces "
                + "the other"
        ),
        (
            #"{"name": "s", "preset": "belfry", "verification": {"scheme": "#
                + #""standardWebhooks", "secrets": [{"secret": "whsec_AAAA"}]}}"#,
            "verification.secrets[0].secret: must be whsec_ and 24 to 64 bytes in base64, "
                + "or whpk_ and 32 bytes in base64"
        ),
        (
            "{\(head), \"verification\": {\"scheme\": \"header\", \"header\": \"a b\", "
                + "\"secrets\": [{\"secret\": \"k\"}]}}",
            "verification.header: must be the name of an HTTP header"
        ),
        (
            #"{"name": "s", "preset": "custom", "verification": {"scheme": "signature", "#
                + #""header": "X", "algorithm": "sha256", "output": "hex", "parts": ["body"], "#
                + #""secrets": [{"secret": "k"}]}}"#,
            "verification.parts: must contain \"secret\": plain sha256 has no other key"
        ),
        (
            #"{"name": "s", "preset": "custom", "verification": {"scheme": "signature", "#
                + #""header": "X", "algorithm": "hmac-sha1", "output": "hex", "parts": "#
                + #"["body"], "timestampHeader": "T", "secrets": [{"secret": "k"}]}}"#,
            "verification.timestampHeader: must be one of the signed parts"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"columns\": {\"a\": \"date\"}}}",
            "mapping.columns.a: must be one of \"timestamp\", \"seconds\", \"milliseconds\", "
                + "\"microseconds\", \"nanoseconds\", \"days\", \"location\", \"reference\", "
                + "\"bytes\", \"uuid\", \"objectID\", \"integer\", \"number\", \"boolean\", "
                + "\"text\", "
                + "\"set\", \"json\""
        ),
        (
            "{\(head), \(open), \"mapping\": {\"recordTypeTemplate\": \"x\"}}",
            "mapping.recordTypeTemplate: must contain {table}"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"recordTypeTemplate\": \"{schem}.{table}\"}}",
            "mapping.recordTypeTemplate: \"{schem}\" is unknown; allowed are {database}, "
                + "{schema}, {table}"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"owner\": {\"column\": \"\"}}}",
            "mapping.owner.column: must not be empty"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"owner\": {\"column\": \"a\", \"header\": \"b\"}}}",
            "mapping.owner: must have exactly one of constant, header, column, pointer"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"dedupe\": [{\"constant\": \"\(long)\"}]}}",
            "mapping.dedupe[0].constant: at most 1024 bytes are allowed"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"owner\": {\"pointer\": \"/\(long)\"}}}",
            "mapping.owner.pointer: at most 1024 bytes are allowed"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"recordTypes\": {\(manyTables)}}}",
            "mapping.recordTypes: at most 1000 are allowed"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"keys\": {\"\(long)\": \"id\"}}}",
            "mapping.keys: names have at most 1024 bytes"
        ),
        (
            "{\(head), \"verification\": {\(signed), \"parts\": [\"body\", \"url\", \"body\"]}}",
            "verification.parts: must contain \"body\" exactly once"
        ),
        (
            "{\(head), \"verification\": {\(signed), "
                + "\"parts\": [{\"literal\": \"\(long)\"}, \"body\"]}}",
            "verification.parts[0].literal: at most 1024 bytes are allowed"
        ),
        (
            "{\(head), \"verification\": {\(signed), \"header\": \"x\", "
                + "\"url\": \"\(long)\", \"parts\": [\"body\"]}}",
            "verification.url: at most 1024 bytes are allowed"
        ),
        (
            "{\(head), \"verification\": {\(signed), \"parts\": [\(urls), \"body\"]}}",
            "verification.parts: at most 32 are allowed"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"owner\": {\"pointer\": \"a\"}}}",
            "mapping.owner.pointer: must be a JSON pointer such as /data/new (RFC 6901)"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"database\": {\"constant\": \"Public\"}}}",
            "mapping.database.constant: must be \"public\", \"private\" or \"shared\""
        ),
        (
            "{\(head), \(open), \"mapping\": {\"tables\": {\"a\": {}}}}",
            "mapping.tables.a: must name at least one of zone, database, owner, readers, "
                + "version, occurredAt, origin"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"tables\": {\"a\": {\"key\": \"b\"}}}}",
            "mapping.tables.a.key: unknown field; allowed are zone, database, owner, readers, "
                + "version, occurredAt, origin"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"tables\": {\"a\": {\"origin\": {}}}}}",
            "mapping.tables.a.origin: must name at least one of device, user"
        ),
        (
            "{\(head), \(open), \"mapping\": {\"tables\": {\"a\": "
                + "{\"database\": {\"constant\": \"mine\"}}}}}",
            "mapping.tables.a.database.constant: must be \"public\", \"private\" or \"shared\""
        ),
        (
            "{\(head), \(open), \"mapping\": {\"key\": []}}",
            "mapping.key: must be the name of a column, or a list of 1 to 16 names"
        ),
        (
            #"{"name": "s", "preset": "minapp", "verification": {"scheme": "none"}}"#,
            "mapping.table: is required: Minapp's requests do not name a table; use one source "
                + "for each table"
        ),
        (
            #"{"name": "s", "preset": "custom", "verification": {"scheme": "none"}, "#
                + #""mapping": {"table": {"constant": "t"}}}"#,
            "mapping.body: is required for the preset custom"
        ),
        (
            #"{"name": "a b", "preset": "belfry", "verification": {"scheme": "none"}}"#,
            "name: not a source name: 1 to 64 letters, digits, hyphens and underscores"
        ),
    ])
    func `a malformed source is refused with the path and what is allowed`(
        text: String, expected: String
    ) {
        #expect(outcome(text) == expected)
    }

    @Test func `the relay's own format refuses mappings of what its bodies say`() {
        let answer = outcome(
            #"{"name": "s", "preset": "belfry", "verification": {"scheme": "none"}, "#
                + #""mapping": {"key": "id"}}"#
        )
        #expect(answer.hasPrefix("mapping.key: unknown field; allowed are recordTypes, tables"))
    }

    @Test func `defaults follow the preset`() throws {
        let debezium = try source("debezium")
        let belfry = try source("belfry")
        #expect(debezium.onUnmappable == .park)
        #expect(debezium.maximumBodyBytes == Limits.maximumWebhookBytes)
        #expect(belfry.onUnmappable == .reject)
        #expect(belfry.contentWindow == .zero)
        for preset in ["appwrite", "postgres", "mongodb", "dynamodb", "wal2json"] {
            #expect(try source(preset).onUnmappable == .park, "\(preset)")
        }
        #expect(SourcePreset.parse.requiredAnswer == ["success": true])
    }
}
