import RelayModel
import Testing

@testable import ChangeSources

/// Returns the members of a signature recipe over the body and `parts`.
private func recipe(
    header: String = "X-S", by algorithm: String = "hmac-sha256", parts: String = #""url""#,
    more: String = ""
) -> String {
    #""scheme":"signature","header":"\#(header)","algorithm":"\#(algorithm)","#
        + #""output":"hex","parts":["body",\#(parts)]\#(more)"#
}

/// The definition that results from saving a source, and the fate of its secrets.
@Suite struct SourceDefinitionTests {
    private func defined(
        _ json: String, over former: ChangeSource? = nil
    ) throws -> SourceDefinition {
        guard case .object(var given) = try JSONValue(parsing: json) else {
            throw JSONContractError(path: "", reason: "no object")
        }
        given["name"] = "shop"
        return try SourceDefinition(given, over: former) { Array(repeating: 7, count: $0) }
    }

    @Test(arguments: [
        ("supabase", #"{"scheme":"header","header":"X-Webhook-Secret"}"#),
        ("hasura", #"{"scheme":"header","header":"X-Webhook-Secret"}"#),
        ("directus", #"{"scheme":"header","header":"X-Webhook-Secret"}"#),
        ("strapi", #"{"scheme":"header","header":"X-Webhook-Secret"}"#),
        ("parse", #"{"scheme":"header","header":"X-Parse-Webhook-Key"}"#),
        ("belfry", #"{"scheme":"standardWebhooks","toleranceSeconds":300}"#),
        ("debezium", #"{"scheme":"standardWebhooks","toleranceSeconds":300}"#),
    ])
    func `a new source gets the verification of its sender`(
        preset: String, verification: String
    ) throws {
        let definition = try defined(#"{"preset": "\#(preset)"}"#)
        let secret = try #require(definition.madeSecret)
        #expect(secret.hasPrefix("whsec_") == (verification.contains("standard")))
        guard case .object(var shown) = definition.source.json["verification"] else { return }
        #expect(shown["secrets"] == [["secret": .string(secret)]])
        shown["secrets"] = nil
        #expect(JSONValue.object(shown).text == verification)
    }

    @Test(arguments: ["hasura", "cloudevents", "postgres"])
    func `each trial change has another key`(preset: String) throws {
        let definition = try defined(#"{"preset": "\#(preset)"}"#)
        let guide = SenderGuide(to: definition.source, at: "http://relay/changes/1/c/development/s")
        let body = try #require(
            guide.trial?.split(separator: "\n").first { $0.hasPrefix("body='") })
        #expect(body.contains(#"":"trial-'"$(date +%s)"'""#), "\(body)")
    }

    @Test func `a constant table without effect is warned about`() throws {
        let mapping = #""mapping":{"table":{"constant":"orders"}}"#
        let hasura = try defined(#"{"preset":"hasura",\#(mapping)}"#)
        #expect(hasura.warnings.first?.hasPrefix("mapping.table: it has no effect") == true)
        #expect(try defined(#"{"preset":"minapp",\#(mapping)}"#).warnings.isEmpty)
        #expect(try defined(#"{"preset":"hasura"}"#, over: hasura.source).warnings.isEmpty)
    }

    @Test func `the sender guide has the table that the mapping names`() throws {
        func guide(_ preset: String, _ table: String = "shop.Orders") throws -> SenderGuide {
            let mapping = #""mapping":{"recordTypes":{"\#(table)":"Order"}}"#
            let source = try defined(#"{"preset":"\#(preset)",\#(mapping)}"#).source
            return SenderGuide(to: source, at: "http://relay/changes/1/c/development/s")
        }
        #expect(try guide("supabase").setup.contains(#"on shop."Orders""#))
        #expect(try guide("supabase", "2026_orders").setup.contains(#"on public."2026_orders""#))
        let named = #""table":{"schema":"shop","name":"Orders"}"#
        #expect(try guide("hasura").setup.contains(named))
        #expect(try guide("hasura").trial?.contains(named) == true)
        #expect(try guide("postgres").setup.contains("--tables shop.Orders"))
    }

    @Test func `a secret with an apostrophe is quoted for the shell`() throws {
        let source = try defined(#"{"preset":"postgres"}"#).source
        let guide = SenderGuide(to: source, at: "http://relay/s", secret: "it's one")
        #expect(guide.setup.contains(#"BELFRY_SOURCE_SECRET='it'\''s one'"#), "\(guide.setup)")
    }

    @Test func `the guides configure Hasura's retries and name Supabase's prerequisite`() throws {
        func setup(_ preset: String) throws -> String {
            let source = try defined(#"{"preset": "\#(preset)"}"#).source
            return SenderGuide(to: source, at: "http://relay/changes/1/c/development/s").setup
        }
        let retries = #""retry_conf":{"num_retries":60,"interval_sec":60,"timeout_sec":60}"#
        #expect(try setup("hasura").contains(retries))
        #expect(try setup("supabase").hasPrefix("-- Database Webhooks must be on"))
    }

    @Test func `the body template for Directus is JSON once it is filled in`() throws {
        let definition = try defined(#"{"preset": "directus"}"#)
        let guide = SenderGuide(to: definition.source, at: "http://relay/changes/1/c/development/s")
        let line = try #require(
            guide.setup.split(separator: "\n").first { $0.hasPrefix("Request body: ") })
        let trigger =
            #"{"event":"items.update","payload":{"a":"\""},"keys":[7],"collection":"orders"}"#
        let filled = line.dropFirst("Request body: ".count)
            .replacing("{{$trigger}}", with: trigger)
            .replacing("{{$accountability}}", with: "null")
        #expect(
            decoded(definition.source, webhook(String(filled)))
                == [#"update orders/7 after partly {"a":"\"","id":7} changed a key content 60s"#])
        #expect(guide.setup.contains("Header: Content-Type: application/json"))
    }

    @Test func `a secret that the sender makes must be given`() throws {
        let minapp = try defined(
            #"{"preset":"minapp","mapping":{"table":{"constant":"Order"}}}"#)
        #expect(minapp.source.verification.scheme == .tokenBody)
        for preset in ["appwrite", "airtable"] {
            let error = #expect(throws: JSONContractError.self) {
                try defined(#"{"preset":"\#(preset)"}"#)
            }
            #expect(error?.path == "verification.secrets")
            #expect(error?.reason.contains("makes the secret") == true)
            #expect(error?.reason.contains("--secret-file") == true)
            let given = try defined(
                #"{"preset":"\#(preset)","verification":{"secrets":[{"secret":"AAECAw=="}]}}"#)
            #expect(given.madeSecret == nil)
            #expect(given.source.verification.secrets.map(\.value) == ["AAECAw=="])
        }
    }

    @Test func `members that are not named stay unchanged`() throws {
        let first = try defined(
            """
            {"preset": "supabase", "onUnmappable": "park", "maximumBodyBytes": 999,
             "mapping": {"recordTypes": {"orders": "Order"}, "owner": {"column": "user_id"}}}
            """)
        let secret = try #require(first.madeSecret)
        for same in ["{}", #"{"preset":"supabase"}"#, #"{"verification":{"scheme":"header"}}"#] {
            let again = try defined(same, over: first.source)
            #expect(again.source == first.source)
            #expect(again.madeSecret == nil)
        }
        let other = try defined(
            #"{"mapping": {"owner": {"header": "X-Owner"}}, "contentWindowSeconds": 5}"#,
            over: first.source)
        #expect(other.source.mapping.recordTypes == first.source.mapping.recordTypes)
        #expect(other.source.mapping.places.owner == .header("X-Owner"))
        #expect(other.source.maximumBodyBytes == 999)
        #expect(other.source.contentWindow == .seconds(5))
        #expect(other.source.verification == first.source.verification)
        let renamed = try defined(
            #"{"verification": {"header": "X-Other"}}"#, over: first.source)
        #expect(renamed.source.verification.scheme == .header("X-Other"))
        #expect(renamed.source.verification.secrets.map(\.value) == [secret])
    }

    @Test func `another preset brings its own bounds, and warns about the verification`()
        throws
    {
        let first = try defined(#"{"preset": "belfry", "maximumBodyBytes": 999}"#)
        #expect(first.warnings.isEmpty)
        let other = try defined(#"{"preset": "hasura"}"#, over: first.source)
        #expect(other.source.contentWindow == .seconds(60))
        #expect(other.source.maximumBodyBytes == 999)
        #expect(other.source.verification == first.source.verification)
        #expect(other.warnings.count == 1)
        #expect(other.warnings.first?.contains("--scheme header") == true)
        let debezium = try defined(#"{"preset": "debezium"}"#, over: first.source)
        #expect(debezium.source.onUnmappable == .park)
        #expect(debezium.warnings.isEmpty)
        let anew = try defined(
            #"{"preset": "parse", "verification": null}"#, over: first.source)
        #expect(anew.source.verification.scheme == .header("X-Parse-Webhook-Key"))
        #expect(anew.warnings.isEmpty && anew.madeSecret != nil)
        let hasura = try defined(#"{"preset": "hasura"}"#)
        let parse = try defined(#"{"preset": "parse"}"#, over: hasura.source)
        #expect(parse.warnings.first?.hasSuffix("--header X-Parse-Webhook-Key") == true)
        #expect(try defined(#"{"preset": "hasura"}"#, over: other.source).warnings.isEmpty)
    }

    @Test func `a named table leaves the others unchanged, and null removes it`()
        throws
    {
        let first = try defined(
            """
            {"preset": "supabase", "mapping": {
              "recordTypes": {"a": "A", "b": "B"}, "keys": {"a": "x"}, "columns": {"t": "seconds"},
              "tables": {"a": {"owner": {"column": "u"}}, "b": {"owner": null}}}}
            """)
        let second = try defined(
            """
            {"mapping": {"recordTypes": {"a": null, "c": "C"}, "keys": {"b": ["y"]},
              "columns": {"t": "milliseconds"},
              "tables": {"b": null, "c": {"zone": {"column": "z"}}}}}
            """, over: first.source)
        let mapping = second.source.mapping
        #expect(mapping.recordTypes.mapValues(\.rawValue) == ["b": "B", "c": "C"])
        #expect(mapping.keys == ["a": ["x"], "b": ["y"]])
        #expect(mapping.columns == ["t": .milliseconds])
        #expect(mapping.tables.keys.sorted() == ["a", "c"])
        #expect(mapping.tables["a"] == first.source.mapping.tables["a"])
        let none = try defined(#"{"mapping": {"tables": null}}"#, over: second.source)
        #expect(none.source.mapping.tables.isEmpty && !none.source.mapping.keys.isEmpty)
    }

    @Test func `a recipe that lets attributes move is refused, but read from a store`()
        throws
    {
        let parts = #"["body", {"header": "ce-id"}, {"literal": "\n"}, {"header": "ce-source"}]"#
        let recipe =
            #"{"scheme": "signature", "header": "X-Sign", "algorithm": "hmac-sha256", "#
            + #""output": "hex", "parts": \#(parts), "secrets": [{"secret": "k"}]}"#
        let json = #"{"preset": "cloudevents", "verification": \#(recipe)}"#
        let error = #expect(throws: JSONContractError.self) { try defined(json) }
        #expect(
            error?.description
                == "verification.parts[1]: the header ce-id follows the body (parts[0]) without a "
                + "line break between, so bytes could move from one to the other under the same "
                + "signature; put a literal with a line break between them, such as "
                + #"{"literal": "\n"}"#)
        guard case .object(var saved) = try JSONValue(parsing: json) else { return }
        saved["name"] = "shop"
        let former = try ChangeSource(json: .object(saved))
        #expect(throws: JSONContractError.self) { try defined(#"{"mapping": {}}"#, over: former) }
        // Other presets do not read such headers.
        let other = try defined(#"{"preset": "belfry", "verification": \#(recipe)}"#)
        #expect(other.source.preset == .belfry)
    }

    @Test func `null restores the default, and another scheme gets its own secret`() throws {
        let first = try defined(
            #"{"preset":"hasura","onUnmappable":"park","mapping":{"owner":{"column":"u"}}}"#)
        let reset = try defined(
            #"{"onUnmappable": null, "mapping": null}"#, over: first.source)
        #expect(reset.source.onUnmappable == .reject)
        #expect(reset.source.mapping == SourceMapping())
        #expect(reset.source.verification == first.source.verification)
        let signed = try defined(
            #"{"verification": {"scheme": "standardWebhooks"}}"#, over: first.source)
        #expect(signed.madeSecret?.hasPrefix("whsec_") == true)
        let open = try defined(#"{"verification": {"scheme": "none"}}"#, over: first.source)
        #expect(open.source.verification == SourceVerification(.none))
        #expect(open.madeSecret == nil)
        #expect(throws: JSONContractError.self) { try defined(#"{"preset": "nonsense"}"#) }
        #expect(throws: JSONContractError.self) {
            try defined(#"{"verification": 3}"#, over: first.source)
        }
    }

    @Test func `the former secret is accepted for a while`() throws {
        let first = try defined(#"{"preset":"hasura"}"#).source
        let old = first.verification.secrets[0].value
        let end = now.advanced(by: .seconds(60))
        let (second, new) = try first.rotated(
            to: nil, formerUntil: end, at: now
        ) { Array(repeating: 8, count: $0) }
        #expect(new != old)
        func isBelieved(_ source: ChangeSource, _ secret: String, after seconds: Int) -> Bool {
            var request = webhook("{}", headers: ["X-Webhook-Secret": secret])
            request.receivedAt = now.advanced(by: .seconds(seconds))
            return (try? source.verify(request)) != nil
        }
        #expect(isBelieved(second, old, after: 59) && isBelieved(second, new, after: 59))
        #expect(!isBelieved(second, old, after: 60) && isBelieved(second, new, after: 60))
        // The secret is rotated again before the first one has ended: the two newest of the three
        // are accepted.
        let (third, newest) = try second.rotated(
            to: "given", formerUntil: end, at: now
        ) { _ in [] }
        #expect(newest == "given")
        #expect(third.verification.secrets.map(\.value) == [new, "given"])
        let (fourth, _) = try third.rotated(to: nil, formerUntil: nil, at: now) { _ in [1, 2] }
        #expect(fourth.verification.secrets.map(\.value) == ["0102"])
        #expect(throws: JSONContractError.self) {
            try first.rotated(to: "", formerUntil: end, at: now) { _ in [] }
        }
        let open = try source("belfry")
        #expect(throws: JSONContractError.self) {
            try open.rotated(to: nil, formerUntil: end, at: now) { _ in [] }
        }
    }

    @Test(arguments: [
        (#"{"scheme":"header","header":"X-S","secrets":[{"secret":"abc\n"}]}"#, "valid header"),
        (#"{"scheme":"bearer","secrets":[{"secret":" abc"}]}"#, "valid header"),
        (#"{"scheme":"minapp","secrets":[{"secret":"(hidden)"}]}"#, "placeholder that is shown"),
        (
            #"{"scheme":"signature","header":"X-S","algorithm":"ed25519","output":"hex","#
                + #""keyEncoding":"hex","parts":["body"],"secrets":[{"secret":"abcd"}]}"#,
            "32 bytes in hex"
        ),
    ])
    func `an unusable or known secret is refused, but read from a store`(
        verification: String, reason: String
    ) throws {
        let json = #"{"preset":"belfry","verification":\#(verification)}"#
        let error = #expect(throws: JSONContractError.self) { try defined(json) }
        #expect(error?.path == "verification.secrets[0].secret", "\(String(describing: error))")
        #expect(error?.reason.contains(reason) == true, "\(String(describing: error))")
        guard case .object(var saved) = try JSONValue(parsing: json) else { return }
        saved["name"] = "shop"
        let former = try ChangeSource(json: .object(saved))
        #expect(try defined(#"{"onUnmappable":"park"}"#, over: former).madeSecret == nil)
        let bad = try #require(former.verification.secrets.first?.value)
        let rotated = #expect(throws: JSONContractError.self) {
            try former.rotated(to: bad, formerUntil: nil, at: now) { _ in [] }
        }
        #expect(rotated?.path == "secret")
    }

    @Test(arguments: [
        (#""scheme":"appwrite","url":"""#, "url"),
        (#""scheme":"appwrite","url":"relay.example/in/shop""#, "url"),
        (recipe(parts: #"{"header":"x-s"}"#), "parts[1].header"),
        (recipe(parts: #"{"header":"Host"}"#), "parts[1].header"),
        (recipe(parts: #"{"header":"X-Forwarded-Host"}"#), "parts[1].header"),
        (recipe(parts: #"{"header":"te"}"#), "parts[1].header"),
        (recipe(header: "Content-Type"), "header"),
        (recipe(header: "via"), "header"),
        (#""scheme":"header","header":"Content-Length""#, "header"),
        (#""scheme":"header","header":"Host""#, "header"),
        (recipe(more: #","prefix":" v1=""#), "prefix"),
        (recipe(more: #","prefix":"v1\n""#), "prefix"),
        (
            recipe(parts: #"{"header":"Date"}"#, more: #","timestampHeader":"date""#),
            "timestampHeader"
        ),
        (recipe(more: #","toleranceSeconds":60"#), "toleranceSeconds"),
        (
            recipe(by: "sha256", parts: #""secret""#, more: #","keyEncoding":"base64""#),
            "keyEncoding"
        ),
        (recipe(by: "ed25519"), "keyEncoding"),
    ])
    func `a scheme that no sender can use is refused, but read from a store`(
        scheme: String, member: String
    ) throws {
        let verification = #"{\#(scheme),"secrets":[{"secret":"c2VjcmV0"}]}"#
        let json = #"{"preset":"appwrite","verification":\#(verification)}"#
        let error = #expect(throws: JSONContractError.self) { try defined(json) }
        #expect(error?.path == "verification.\(member)", "\(String(describing: error))")
        guard case .object(var saved) = try JSONValue(parsing: json) else { return }
        saved["name"] = "shop"
        _ = try ChangeSource(json: .object(saved))
    }

    @Test func `a recipe that may fit is accepted`() throws {
        for signed in [
            recipe(parts: #"{"header":"Content-Type"}"#, more: #","prefix":"v1= ""#),
            recipe(
                parts: #"{"header":"X-Time"}"#,
                more: #","timestampHeader":"x-time","toleranceSeconds":60"#),
            recipe(by: "sha256", parts: #""secret""#, more: #","toleranceSeconds":300"#),
        ] {
            let taken = try defined(
                #"{"preset":"belfry","verification":{\#(signed),"secrets":[{"secret":"s"}]}}"#)
            #expect(taken.madeSecret == nil, "\(signed)")
        }
    }

    @Test func `a secret is at most as long as a header allows`() throws {
        func given(bytes: Int) -> String {
            let secret = String(repeating: "s", count: bytes)
            return #"{"preset":"hasura","verification":{"secrets":[{"secret":"\#(secret)"}]}}"#
        }
        let longest = try defined(given(bytes: 8192)).source
        let set = #expect(throws: JSONContractError.self) { try defined(given(bytes: 8193)) }
        #expect(set?.path == "verification.secrets[0].secret")
        #expect(set?.reason == "must be at most 8192 bytes")
        let long = String(repeating: "s", count: 8193)
        let rotated = #expect(throws: JSONContractError.self) {
            try longest.rotated(to: long, formerUntil: nil, at: now) { _ in [] }
        }
        #expect(rotated?.path == "secret" && rotated?.reason == "must be at most 8192 bytes")
        // A source with a longer secret from before can still change its other members.
        var former = longest
        former.verification.secrets = [SourceSecret(long)]
        let changed = try defined(#"{"onUnmappable": "park"}"#, over: former).source
        #expect(changed.verification.secrets.map(\.value) == [long])
    }
}
