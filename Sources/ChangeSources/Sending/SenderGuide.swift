import RelayModel

/// Ready-to-paste instructions for the sender of a source, and a webhook to try it with.
package struct SenderGuide: Sendable {
    private let source: ChangeSource
    private let url: String
    private let secret: String?

    /// The placeholder for a secret that is not known here.
    private static let placeholder = "THE-SECRET"

    /// Creates a guide to posting to `source` at `url`.
    ///
    /// `secret` is known only when it was just made.
    package init(to source: ChangeSource, at url: String, secret: String? = nil) {
        self.source = source
        self.url = url
        self.secret = secret
    }

    private var shownSecret: String { secret ?? Self.placeholder }

    /// The headers that authenticate the sender, if they are the same for every request.
    private var fixedHeaders: [(String, String)] {
        switch source.verification.scheme {
        case .header(let name): [(name, shownSecret)]
        case .bearer: [("Authorization", "Bearer \(shownSecret)")]
        case .none, .standardWebhooks, .tokenBody, .combined, .signature: []
        }
    }

    // MARK: Setting the sender up

    /// The instructions, in the sender's own terms.
    package var setup: String {
        switch source.preset {
        case .supabase: supabase
        case .hasura: hasura
        case .debezium: debezium
        case .parse: parse
        case .directus: directus
        case .strapi: listed(in: "config/server.js or the settings of Strapi, under Webhooks")
        case .appwrite:
            """
            In Appwrite's console, under Settings, Webhooks: enter the URL \(url)
            and select the events of the databases to follow. The webhook's signature key is this
            source's secret.
            """
        case .airtable:
            """
            curl -X POST https://api.airtable.com/v0/bases/BASE-ID/webhooks \\
              -H "Authorization: Bearer $AIRTABLE_TOKEN" -H "Content-Type: application/json" \\
              -d '{"notificationUrl": "\(url)", "specification": {"options": {
                     "filters": {"dataTypes": ["tableData"]},
                     "includes": {"includePreviousCellValues": true,
                                  "includeCellValuesInFieldIds": "all"}}}}'
            # macSecretBase64 of the answer is this source's secret. Pings have no changes: fetch
            # the payloads, and post them to the same URL, signed with the same secret.
            """
        case .minapp:
            "In Minapp's console, create a trigger for each table, with a webhook as its action; "
                + "enter the URL \(url) and this source's secret."
        case .postgres: postgres
        case .belfry, .cloudevents, .mongodb, .dynamodb, .wal2json, .cloudkit, .custom:
            listed(
                in: "the program that posts (docs/webhook-signing.md has code in five languages)")
        }
    }

    private var postgres: String {
        """
        export PGPASSFILE=$HOME/.pgpass BELFRY_SOURCE_SECRET=\(ShellWord.quoted(shownSecret))
        belfry follow postgres --url postgresql://USER@HOST/DATABASE --publication belfry --make \\
          --tables \(schema).\(table) --source-url \(ShellWord.quoted(url))
        """
    }

    private var supabase: String {
        let headers = JSONValue.object(
            JSONObject(
                [("Content-Type", .string("application/json"))]
                    + fixedHeaders.map { ($0.0, .string($0.1)) }))
        return """
            -- Database Webhooks must be on: they are an integration in Supabase's dashboard.
            create trigger belfry after insert or update or delete
              on \(Self.sqlName(schema)).\(Self.sqlName(table))
              for each row execute function supabase_functions.http_request(
                \(Self.quoted(url)), 'POST',
                \(Self.quoted(headers.text)), '{}', '5000');
            """
    }

    private var hasura: String {
        let rows: JSONValue = ["columns": "*"]
        let arguments: JSONObject = [
            "name": .string("belfry_\(table)"), "source": "default",
            "table": ["schema": .string(schema), "name": .string(table)],
            "webhook": .string(url),
            "insert": rows, "update": rows, "delete": rows,
            "headers": .array(
                fixedHeaders.map { ["name": .string($0.0), "value": .string($0.1)] }),
            // By default Hasura does not retry at all, for example while a relay restarts.
            "retry_conf": ["num_retries": 60, "interval_sec": 60, "timeout_sec": 60],
            "replace": true,
        ]
        let call: JSONValue = [
            "type": "pg_create_event_trigger", "args": .object(arguments),
        ]
        return """
            curl -X POST https://YOUR-HASURA/v1/metadata \\
              -H "X-Hasura-Admin-Secret: $HASURA_ADMIN_SECRET" \\
              -H "Content-Type: application/json" \\
              -d \(ShellWord.quoted(call.text))
            """
    }

    private var debezium: String {
        var lines = [
            "debezium.format.value=json", "debezium.sink.type=http",
            "debezium.sink.http.url=\(url)",
        ]
        if case .standardWebhooks = source.verification.scheme {
            lines.append("debezium.sink.http.authentication.type=standard-webhooks")
            lines.append("debezium.sink.http.authentication.webhook.secret=\(shownSecret)")
        }
        return lines.joined(separator: "\n")
    }

    private var parse: String {
        """
        # In the configuration of Parse Server: webhookKey: "\(shownSecret)"
        # Then, once for each class and each of afterSave and afterDelete:
        curl -X POST https://YOUR-PARSE/parse/hooks/triggers \\
          -H "X-Parse-Application-Id: $APP_ID" -H "X-Parse-Master-Key: $MASTER_KEY" \\
          -H "Content-Type: application/json" \\
          -d '{"className": "\(table)", "triggerName": "afterSave", "url": "\(url)"}'
        """
    }

    private var directus: String {
        listed(
            in: "a flow with the trigger Event Hook, Action (Non-Blocking), and the operation "
                + "Webhook / Request URL")
            // Directus inserts an object as JSON. Within quotes it would no longer be an object.
            + "\nRequest body: "
            + #"{"trigger": {{$trigger}}, "accountability": {{$accountability}} }"#
    }

    private func listed(in place: String) -> String {
        var lines = ["In \(place):", "URL: \(url)", "Method: POST"]
        lines += (fixedHeaders + [("Content-Type", "application/json")]).map {
            "Header: \($0.0): \($0.1)"
        }
        switch source.verification.scheme {
        case .standardWebhooks: lines.append("Signed as Standard Webhooks say, with this secret.")
        case .combined, .signature: lines.append("Signed with this secret.")
        case .none, .header, .bearer, .tokenBody: break
        }
        return lines.joined(separator: "\n")
    }

    /// Returns a text as an SQL string literal.
    private static func quoted(_ text: String) -> String {
        "'\(text.replacing("'", by: "''"))'"
    }

    /// The parts of a table's name that the mapping has: the name, possibly preceded by its schema.
    private var named: [String] {
        (source.mapping.recordTypes.keys.min() ?? "todos").split(separator: ".").map(String.init)
    }

    /// A table that the mapping names, or an invented one.
    private var table: String {
        named.last.flatMap { Self.isPlain($0) ? $0 : nil } ?? "todos"
    }

    /// The schema of that table.
    private var schema: String {
        named.dropLast().last.flatMap { Self.isPlain($0) ? $0 : nil } ?? "public"
    }

    private static func isPlain(_ name: String) -> Bool {
        name.utf8.allSatisfy {
            0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 || 0x61...0x7A ~= $0 || $0 == 0x5F
        }
    }

    /// Returns a plain name as an SQL identifier.
    ///
    /// It is quoted if it has capital letters, which SQL would turn into lower case, or begins with
    /// a digit.
    private static func sqlName(_ name: String) -> String {
        let isNumber = name.utf8.first.map { 0x30...0x39 ~= $0 } ?? false
        return name == name.lowercased() && !isNumber ? name : "\"\(name)\""
    }

    // MARK: A webhook to try

    /// A shell script that posts one change as the sender would.
    ///
    /// It is `nil` if only the sender can sign, or if the signed text has control characters. It
    /// needs `curl`, and for a signature also `openssl`.
    package var trial: String? {
        SenderTrial(source, url: url, secret: secret, schema: schema, table: table).script
    }
}
