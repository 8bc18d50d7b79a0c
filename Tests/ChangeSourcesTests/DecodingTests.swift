import RelayModel
import RelayTestKit
import Testing

@testable import ChangeSources

private func keys(_ batch: DecodedBatch) -> [DedupeKey?] {
    batch.items.map { item in
        if case .change(_, let key) = item { key } else { nil }
    }
}

@Suite struct DedupeKeyTests {
    private func keys(
        _ body: String, _ headers: WebhookHeaders = [:]
    ) throws -> [DedupeKey?] {
        let batch = try source("belfry").decode(webhook(body, headers: headers))
        return ChangeSourcesTests.keys(batch)
    }

    @Test func `a delivery ID that is used for another body has another digest`() throws {
        let headers: WebhookHeaders = ["webhook-id": "m"]
        func body(_ title: String, _ occurredAt: Int) -> String {
            """
            {"operation":"create","recordType":"T","recordName":"r",
             "occurredAt":\(occurredAt),"after":{"title":"\(title)"}}
            """
        }
        let first = try #require(try keys(body("a", 1), headers)[0])
        let retry = try #require(try keys(body("a", 2), headers)[0])
        let other = try #require(try keys(body("b", 1), headers)[0])
        #expect(first == retry)
        #expect(first.text == other.text)
        #expect(first.digest != other.digest)
    }

    @Test func `the rows of a document that Strapi deletes are one deletion`() throws {
        func key(_ entry: String, mapping: String = "{}") throws -> DedupeKey? {
            let body = #"{"event":"entry.delete","model":"order","entry":\#(entry)}"#
            return ChangeSourcesTests.keys(
                try source("strapi", mapping: mapping).decode(webhook(body)))[0]
        }
        let draft = #"{"id":7,"documentId":"abc","updatedAt":"2026-01-02T03:04:05Z","title":"b"}"#
        let published =
            #"{"id":9,"documentId":"abc","updatedAt":"2026-01-02T03:04:04Z","title":"a"}"#
        let first = try #require(try key(draft))
        #expect(first.kind == .content)
        #expect(try key(published) == first)
        #expect(try key(#"{"id":7,"documentId":"abd"}"#) != first)
        // If each row is a record, each row is a deletion of its own.
        let rows = #"{"key": "id"}"#
        #expect(try key(draft, mapping: rows) != key(published, mapping: rows))
    }

    @Test func `the content key has the last content, so a change back is new`() throws {
        func key(_ old: String, _ new: String, id: Int = 1) throws -> DedupeKey {
            let body = """
                {"type":"UPDATE","table":"t","record":{"id":\(id),"a":"\(new)"},
                 "old_record":{"id":\(id),"a":"\(old)"}}
                """
            return try #require(
                ChangeSourcesTests.keys(try source("supabase").decode(webhook(body)))[0])
        }
        let set = try key("x", "y")
        let takenBack = try key("y", "x")
        #expect(set.kind == .content)
        #expect(try key("x", "y") == set)
        #expect(takenBack.text == set.text)
        #expect(takenBack.digest != set.digest)
        #expect(try key("x", "y", id: 2).text != set.text)
    }

    @Test func `a document that MongoDB looks up later does not change the key`()
        throws
    {
        func key(_ status: String, _ operation: String = "update") throws -> DedupeKey {
            let update = operation == "update" ? #","updateDescription":{"updatedFields":{}}"# : ""
            let body = """
                {"_id":{"_data":"8263"},"operationType":"\(operation)","ns":{"db":"d","coll":"c"},
                 "documentKey":{"_id":1},"fullDocument":{"_id":1,"status":"\(status)"}\(update)}
                """
            return try #require(
                ChangeSourcesTests.keys(try source("mongodb").decode(webhook(body)))[0])
        }
        #expect(try key("paid") == key("shipped"))
        // A document that comes out of the log is the same each time.
        #expect(try key("paid", "replace").digest != key("shipped", "replace").digest)
    }

    @Test func `a delivery with several changes of a record is repeated as a whole`() throws {
        func keys(_ changes: String...) throws -> [DedupeKey?] {
            let body = "[" + changes.joined(separator: ",") + "]"
            return ChangeSourcesTests.keys(try source("supabase").decode(webhook(body)))
        }
        func change(_ old: String, _ new: String, id: Int = 1) -> String {
            """
            {"type":"UPDATE","table":"t","record":{"id":\(id),"a":"\(new)"},
             "old_record":{"id":\(id),"a":"\(old)"}}
            """
        }
        let (set, takenBack) = (change("x", "y"), change("y", "x"))
        let alone = try keys(set)
        let both = try keys(set, takenBack, takenBack, change("x", "y", id: 2))
        #expect(both[0]?.text == alone[0]?.text)
        #expect(both[0]?.digest != alone[0]?.digest)
        #expect(both[1]?.text == alone[0].map { "\($0.text)#1" })
        // A change that is repeated directly is a repetition within the delivery.
        #expect(both[2] == both[1])
        #expect(try both[3] == keys(change("x", "y", id: 2))[0])
        #expect(try keys(set, set) == [alone[0], alone[0]])
    }

    @Test func `members in another order are the same content`() throws {
        let a = try source("supabase").decode(
            webhook(#"{"type":"INSERT","table":"t","record":{"id":1,"a":{"x":1,"y":2}}}"#))
        let b = try source("supabase").decode(
            webhook(#"{"table":"t","type":"INSERT","record":{"a":{"y":2,"x":1},"id":1}}"#))
        #expect(ChangeSourcesTests.keys(a) == ChangeSourcesTests.keys(b))
    }

    @Test func `a digest never changes, because stores remember it`() throws {
        let zone = try #require(
            ZoneID(zoneName: "home", ownerRecordName: Fixtures.identifier("bob")))
        var change = RecordChange(
            .update, of: Fixtures.identifier("Todo"),
            RecordID(recordName: Fixtures.identifier("a\"b"), zoneID: zone))
        change.database = .shared
        change.owner = Fixtures.identifier("ann")
        change.before = RecordImage([:], completeness: .partial)
        change.after = RecordImage([
            "z": .string("line\n"), "a": .list([.integer(1), .null]), "m": .double(2),
        ])
        change.changedKeys = ["z", "a"]
        change.origin = ChangeOrigin(
            deviceID: Fixtures.identifier("phone"), userID: Fixtures.identifier("carol"))
        change.readers = ["dave"]
        change.version = 7
        change.occurredAt = Timestamp(seconds: 5, nanoseconds: 0)
        // SHA-256 of {"operation":"update","recordType":"Todo","recordName":"a\"b","zone":"home",
        // "database":"shared","snapshot":false,"zoneOwner":"bob","owner":"ann",
        // "before":{"fields":{},"completeness":"partial"},
        // "after":{"fields":{"a":[1,null],"m":2.0,"z":"line\n"},"completeness":"full"},
        // "changedKeys":["a","z"],"device":"phone","user":"carol","readers":["dave"],"version":7}
        // without the line breaks.
        #expect(
            Hexadecimal.encode(change.contentDigest)
                == "b59e733d7e64294b3055cfdca63f4a42966dcc512c72cb1086cfddacae1fc35c")
    }

    @Test func `a long key is replaced by its digest`() {
        let short = DedupeKey(
            .delivery, String(repeating: "k", count: 255), digest: [])
        let long = DedupeKey(
            .delivery, String(repeating: "k", count: 256), digest: [])
        #expect(short.text.utf8.count == 255)
        #expect(long.text.hasPrefix("sha256:") && long.text.utf8.count == 71)
    }

    @Test func `a list has a key for each element, and an object has no number`() throws {
        let change = #"{"operation":"delete","recordType":"T","recordName":"r"}"#
        let headers: WebhookHeaders = ["webhook-id": "m"]
        #expect(try keys(change, headers).map { $0?.text } == ["m"])
        #expect(try keys("[\(change)]", headers).map { $0?.text } == ["m#0"])
        #expect(
            try keys("{\"changes\":[\(change),\(change)]}", headers).map { $0?.text }
                == ["m#0", "m#1"])
    }

    @Test func `a delivery with several changes has a key that includes their number`() throws {
        let change = #"{"operation":"delete","recordType":"T","recordName":"r"}"#
        func key(
            _ body: String, _ headers: WebhookHeaders = ["webhook-id": "m"]
        ) throws -> DedupeKey? {
            try source("belfry").decode(webhook(body, headers: headers)).key
        }
        let two = try #require(try key("[\(change),\(change)]"))
        #expect(two.kind == .delivery)
        #expect(two.text == "m")
        #expect(try key("[ \(change), \(change)]") == two)
        #expect(try key("[\(change)]")?.text == "m")
        #expect(try key("[\(change)]")?.digest != two.digest)
        #expect(try key(change) == nil)
        #expect(try key(change, ["webhook-id": String(repeating: "m", count: 300)]) == nil)
        #expect(try key("[\(change),\(change)]", [:]) == nil)
    }

    @Test func `both changes of a changed key have their own keys`() throws {
        let body = """
            {"id":"h1","table":{"name":"t"},
             "event":{"op":"UPDATE","data":{"old":{"id":1},"new":{"id":2}}}}
            """
        let batch = try source("hasura").decode(webhook(body))
        #expect(ChangeSourcesTests.keys(batch).map { $0?.text } == ["h1/0", "h1/1"])
    }
}

@Suite struct LimitsTests {
    private func count(_ number: Int) -> Int? {
        let change = #"{"operation":"delete","recordType":"T","recordName":"r"}"#
        let body = "[" + Array(repeating: change, count: number).joined(separator: ",") + "]"
        return try? source("belfry").decode(webhook(body)).items.count
    }

    @Test func `a body holds at most a thousand changes`() throws {
        #expect(count(1000) == 1000)
        let body = "[" + Array(repeating: "0", count: 1001).joined(separator: ",") + "]"
        let answer = decoded(
            try source("belfry", more: #", "onUnmappable": "park""#), webhook(body))
        #expect(answer == ["error 413 1001 changes; 1000 are allowed"])
    }

    @Test func `the limit of a body is exact`() throws {
        let source = try source("belfry", more: #", "maximumBodyBytes": 14"#)
        #expect(decoded(source, webhook(#"{"changes":[]}"#)) == [])
        #expect(
            decoded(source, webhook(#"{"changes":[]} "#))
                == ["error 413 the body has 15 bytes; 14 are allowed"])
    }

    @Test func `a record has at most a thousand fields`() throws {
        func answer(_ fields: Int) throws -> String {
            let row = (0..<fields).map { "\"f\($0)\":\($0)" }.joined(separator: ",")
            let body = #"{"type":"INSERT","table":"t","record":{"id":1,"# + row + "}}"
            return decoded(try source("supabase"), webhook(body))[0]
        }
        #expect(try answer(999).hasPrefix("create t/1"))
        #expect(try answer(1000) == "error 422 record: 1001 fields; 1000 are allowed")
    }

    @Test func `a change has no more changed fields than a record has fields`() throws {
        func answer(_ count: Int) throws -> String {
            let keys = (0..<count).map { "\"f\($0)\"" }.joined(separator: ",")
            let body =
                #"{"operation":"update","recordType":"T","recordName":"r","after":{},"#
                + #""changedKeys":[\#(keys)]}"#
            return decoded(try source("belfry"), webhook(body))[0]
        }
        #expect(try answer(1000).hasPrefix("update T/r"))
        let told = "it names 1001 changed fields; 1000 are allowed"
        #expect(try answer(1001).hasSuffix(told))
    }

    /// Copying the path for each element would copy two hundred gigabytes.
    @Test(arguments: [("parse", "1"), ("dynamodb", #"{"N":"1"}"#)])
    func `a long list under a long name is read in linear memory`(
        preset: String, element: String
    ) throws {
        let name = String(repeating: "n", count: 1_000_000)
        let list = Array(repeating: element, count: 200_000).joined(separator: ",")
        var body = #"{"triggerName":"afterSave","object":{"className":"Order","objectId":"o7","#
        body += #""\#(name)":[\#(list)]}}"#
        if preset == "dynamodb" {
            body = #"{"Records":[{"eventName":"INSERT","dynamodb":{"Keys":{"id":{"S":"o7"}},"#
            body += #""NewImage":{"\#(name)":{"L":[\#(list)]}}},"#
            body += #""eventSourceARN":"a:table/Order/stream/x"}]}"#
        }
        let source = try source(preset, more: #", "maximumBodyBytes": 4194304"#)
        let read = decoded(source, webhook(body))
        #expect(read.count == 1 && read[0].hasPrefix("create Order/o7"))
    }

    @Test func `a number beyond 64 bits is a text in a text column, and refused as a key`()
        throws
    {
        let source = try source(
            "supabase", mapping: #"{"columns":{"id":"text","big":"text"}}"#)
        func answer(_ id: String) -> String {
            let row = #"{"id":\#(id),"big":1e20}"#
            return decoded(
                source, webhook(#"{"type":"INSERT","table":"t","record":\#(row)}"#))[0]
        }
        #expect(answer("7").hasPrefix(#"create t/7 after {"big":"1e+20","id":"7"}"#))
        #expect(answer("18446744073709551615").hasPrefix("error 422 record.id: "))
    }

    /// Otherwise the same number would be one name as a key and another one as a user.
    @Test func `a number beyond 64 bits from PostgreSQL names users and records`() throws {
        let mapping =
            #"{"columns":{"id":"text","other":"reference"},"#
            + #""owner":{"column":"ann"},"readers":{"column":"all"}}"#
        let body =
            #"[{"operation":"create","database":"shop","schema":"public","table":"t","key":["id"],"#
            + #""after":{"id":1e20,"other":1e20,"ann":1e20,"all":[1e20]},"version":17,"#
            + #""position":"7301/0/12/773/0"}]"#
        let said = decoded(try source("postgres", mapping: mapping), webhook(body))
        #expect(said.count == 1)
        #expect(said[0].hasPrefix("create t/1e+20 private 1e+20 after "), "\(said[0])")
        #expect(said[0].contains("readers 1e+20"), "\(said[0])")
    }

    @Test func `a payload for many items is bounded by their product`() throws {
        func answer(_ count: Int) throws -> [String] {
            let keys = (0..<count).map { "\($0)" }.joined(separator: ",")
            let text = String(repeating: "x", count: 400_000)
            let body =
                #"{"event":"items.update","collection":"orders","keys":[\#(keys)],"#
                + #""payload":{"text":"\#(text)"}}"#
            return decoded(try source("directus"), webhook(body))
        }
        #expect(try answer(3).count == 3)
        let refused = try answer(200)
        #expect(refused.count == 1)
        #expect(refused[0].contains("200 keys with a payload of 400011 bytes each"))
    }

    /// Otherwise a body of 60 kB would be half a gigabyte of fields before it is refused.
    @Test func `a payload for many items is refused before it is copied for each`() throws {
        let fields = (0..<7000).map { #""\#($0)":1"# }.joined(separator: ",")
        let keys = (0..<1000).map { "\($0)" }.joined(separator: ",")
        let body =
            #"{"event":"items.update","collection":"orders","keys":[\#(keys)],"#
            + #""payload":{\#(fields)}}"#
        #expect(
            decoded(try source("directus"), webhook(body))
                == ["error 422 payload: 7000 fields; 1000 are allowed"])
    }

    /// Comparing each column of the row with each of the key would take a minute.
    @Test func `a key of very many columns is compared in linear time`() throws {
        let names = (0..<100_000).map { #""c\#($0)""# }
        let values = Array(repeating: "1", count: names.count).joined(separator: ",")
        let body =
            #"{"change":[{"kind":"delete","schema":"public","table":"t","#
            + #""oldkeys":{"keynames":[\#(names.joined(separator: ","))],"#
            + #""keyvalues":[\#(values)]},"#
            + #""pk":{"pknames":[\#(names.reversed().joined(separator: ","))]}}]}"#
        let source = try source("wal2json", more: #", "maximumBodyBytes": 4194304"#)
        #expect(
            decoded(source, webhook(body))
                == ["parked: change[0].oldkeys: 100000 fields; 1000 are allowed"])
    }

    @Test func `names of Airtable's tables are bounded, because all record paths contain them`()
        throws
    {
        let name = String(repeating: "t", count: 256)
        let body = #"{"changedTablesById":{"\#(name)":{"destroyedRecordIds":["r"]}}}"#
        let told = "changedTablesById: a name in it has more than 255 bytes"
        #expect(decoded(try source("airtable"), webhook(body))[0].hasSuffix(told))
    }

    @Test func `a byte order mark before a body is skipped`() throws {
        let body = "\u{FEFF}" + #"{"operation":"delete","recordType":"Art","recordName":"a"}"#
        #expect(decoded(try source("belfry"), webhook(body)) == ["delete Art/a"])
    }

    @Test func `nesting is bounded`() throws {
        func answer(_ depth: Int) throws -> String {
            let value = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let body = #"{"operation":"create","recordType":"T","recordName":"r","after":{"a":"#
            return decoded(try source("belfry"), webhook(body + value + "}}"))[0]
        }
        #expect(try answer(127).hasPrefix("create T/r"))
        #expect(try answer(128).hasPrefix("error 400 the body is not JSON at byte"))
        #expect(try answer(100_000).hasPrefix("error 400 the body is not JSON at byte"))
    }
}

@Suite struct ReadersTests {
    @Test(arguments: [
        (
            #"{"a":1,"id":1}"#,
            #"error 422 record.readrs: the row lacks this column, which the mapping names for its "#
                + #"readers; if the table has no readers, set "readers": null for it in the "#
                + #"mapping's "tables""#
        ),
        (#"{"id":1,"readrs":null}"#, #"create t/1 after {"id":1,"readrs":null}"#),
        (#"{"id":1,"readrs":"ann"}"#, #"create t/1 after {"id":1,"readrs":"ann"} readers ann"#),
    ])
    func `a row without the column of its readers is refused`(
        record: String, said: String
    ) throws {
        let supabase = try source(
            "supabase", mapping: #"{"readers": {"column": "readrs"}}"#)
        let posted = webhook(#"{"table":"t","type":"INSERT","record":\#(record)}"#)
        let items = decoded(supabase, posted)
        #expect(items.count == 1 && items[0].hasPrefix(said), "\(items)")
        let open = try source(
            "supabase",
            mapping: #"{"readers": {"column": "readrs"}, "tables": {"t": {"readers": null}}}"#)
        #expect(decoded(open, posted).allSatisfy { $0.hasPrefix("create t/1") })
    }

    /// wal2json has no whole rows without REPLICA IDENTITY FULL, but all columns of a changed one.
    @Test(arguments: [#"{"column": "readers"}"#, #"{"pointer": "/columns/2/value"}"#])
    func `a null in the place of readers was sent, unless its row was deleted`(
        readers: String
    ) throws {
        let wal = try source("wal2json", mapping: #"{"readers": \#(readers)}"#)
        func lacks(_ action: String, _ value: String?) throws -> [Bool] {
            var columns =
                #"{"name":"id","type":"integer","value":1},"#
                + #"{"name":"note","type":"text","value":"x"}"#
            if let value { columns += #",{"name":"readers","type":"text","value":\#(value)}"# }
            let body =
                #"{"action":"\#(action)","schema":"public","table":"t","columns":[\#(columns)],"#
                + #""identity":[{"name":"id","type":"integer","value":1}]}"#
            return try wal.decode(webhook(body)).items.map { item in
                if case .change(let change, _) = item { change.lacksReaders } else { false }
            }
        }
        #expect(try lacks("U", "null") == [false])
        #expect(try lacks("U", nil) == [true])
        #expect(try lacks("U", #""bob""#) == [false])
        #expect(try lacks("D", nil) == [true])
    }

    // A list of one megabyte, repeated for a thousand changes, would take a gigabyte in the log.
    @Test func `a long list of readers is not repeated for too many changes`() throws {
        let wal = try source("wal2json", mapping: #"{"readers": {"pointer": "/who"}}"#)
        let who = (0..<5000).map { "\"user\($0)\"" }.joined(separator: ",")
        func items(_ count: Int) -> [String] {
            let changes = (0..<count).map { number in
                #"{"kind":"insert","schema":"public","table":"t","columnnames":["id"],"#
                    + #""columntypes":["integer"],"columnvalues":[\#(number)]}"#
            }
            let list = changes.joined(separator: ",")
            return decoded(wal, webhook(#"{"change":[\#(list)],"who":[\#(who)]}"#))
        }
        let few = items(3)
        #expect(few.count == 3 && few.allSatisfy { $0.hasPrefix("create") })
        let many = items(400)
        #expect(many.count == 1 && many[0].contains("too many readers"))
    }

    // A naive parser would search all the rest for the end of each bracket.
    @Test(.timeLimit(.minutes(5)))
    func `a type of very many brackets is read as an unknown type`() throws {
        let brackets = String(repeating: "(", count: 500_000)
        let body =
            #"{"change":[{"kind":"insert","schema":"public","table":"t","columnnames":["id"],"#
            + #""columntypes":["\#(brackets)"],"columnvalues":["7"]}]}"#
        let items = decoded(try source("wal2json"), webhook(body))
        #expect(items.count == 1 && items[0].hasPrefix("create"), "\(items)")
        #expect(PostgresKind(typeName: "timestamp(3) without time zone[]") == .list(.moment))
    }

    // Several elements in one body must not take more room together than one.
    @Test func `the readers of several elements share one bound`() throws {
        let wal = try source(
            "wal2json", mapping: #"{"readers": {"pointer": "/who"}}"#,
            more: #", "contentWindowSeconds": 0"#)
        let filling = String(repeating: "x", count: 200)
        let who = (0..<500).map { "\"\(filling)\($0)\"" }.joined(separator: ",")
        let changes = (0..<130).map { number in
            #"{"kind":"insert","schema":"public","table":"t","columnnames":["id"],"#
                + #""columntypes":["integer"],"columnvalues":[\#(number)]}"#
        }
        let element = #"{"change":[\#(changes.joined(separator: ","))],"who":[\#(who)]}"#
        func items(_ count: Int) throws -> [DecodedItem] {
            let list = Array(repeating: element, count: count).joined(separator: ",")
            return try wal.decode(webhook("[\(list)]")).items
        }
        let few = try items(2)
        #expect(few.count == 260)
        let many = try items(3)
        let last = many.last.map(describe) ?? ""
        #expect(many.count == 261 && last.contains("too many readers"))
    }
}

@Suite struct StoredFormTests {
    @Test(arguments: SourcePreset.allCases)
    func `every change of the fixtures reads from the log as it was written`(
        preset: SourcePreset
    ) throws {
        for fixture in try FixtureFile(preset: preset).read() {
            let mapping = fixture.mapping ?? FixtureTests.mapping(preset)
            let source = try source(preset.rawValue, mapping: mapping)
            guard let batch = try? source.decode(fixture.request) else { continue }
            for case .change(var change, _) in batch.items {
                let text = JSONValue.object(change.storedForm).utf8
                // `movedFrom` is not stored; it is for the code that appends the change.
                change.movedFrom = nil
                #expect(try RecordChange(storedForm: JSONValue(parsing: text)) == change)
            }
        }
    }
}

/// Every mutated body gives a value or a documented error.
@Suite struct HostileInputTests {
    @Test(arguments: SourcePreset.allCases)
    func `no truncated or mutated body crashes the decoder`(preset: SourcePreset) throws {
        let seed: UInt64 = 0x5EED_0000
        var generator = SeededGenerator(seed: seed)
        for fixture in try FixtureFile(preset: preset).read() {
            let mapping = fixture.mapping ?? FixtureTests.mapping(preset)
            let source = try source(preset.rawValue, mapping: mapping)
            var request = fixture.request
            let original = request.body
            for length in stride(from: 0, to: original.count, by: 7) {
                request.body = Array(original[..<length])
                _ = decoded(source, request)
            }
            for _ in 0..<60 {
                request.body = Self.mutated(original, using: &generator)
                _ = decoded(source, request)
                _ = try? source.verify(request)
            }
        }
    }

    /// Returns the body after one to four splices: bytes replaced, removed or repeated, or hostile
    /// texts inserted.
    private static func mutated(
        _ body: [UInt8], using generator: inout SeededGenerator
    ) -> [UInt8] {
        let texts = [
            "null", "{}", "[]", "\"\"", "-9223372036854775808", "9223372036854775807", "1e308",
            "-1", "\"\\u0000\"", "true", "{\"$ts\":[9223372036854775807,0]}", "\"9999-12-31\"",
            "{\"$date\":1e300}", "{\"t\":4294967296,\"i\":-1}", "\"\u{1F600}\"",
        ]
        var bytes = body
        for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
            let start = Int.random(in: 0..<bytes.count, using: &generator)
            let end = min(bytes.count, start + Int.random(in: 0...8, using: &generator))
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: bytes.removeSubrange(start..<end)
            case 1: bytes.insert(contentsOf: Array(bytes[start..<end]), at: start)
            case 2: bytes[start] = UInt8.random(in: 0...255, using: &generator)
            default: replaceValue(&bytes, near: start, by: texts.randomElement(using: &generator))
            }
        }
        return bytes
    }

    /// Replaces the value after the next colon, so that the body often stays JSON.
    private static func replaceValue(_ bytes: inout [UInt8], near start: Int, by text: String?) {
        guard let colon = bytes[start...].firstIndex(of: UInt8(ascii: ":")) else { return }
        let rest = bytes[(colon + 1)...]
        let end = rest.firstIndex { ",}]".utf8.contains($0) } ?? bytes.count
        bytes.replaceSubrange(colon + 1..<end, with: Array((text ?? "").utf8))
    }
}
