import Dispatch
import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// The bounds of record queries, and what happens to queries that exceed them.
@Suite struct QueryScenarioTests {
    private static func settings(
        rows: Int = 200_000, time: Duration = .seconds(3600), places: Int = 32
    ) -> QueryAdmission.Settings {
        var settings = QueryAdmission.Settings()
        settings.rows = rows
        settings.time = time
        settings.placesOfContainer = places
        return settings
    }

    private static func fill(_ relay: TestRelay, _ count: Int, bytes: Int = 0) async throws {
        let text = String(repeating: "x", count: bytes)
        for number in 1...count {
            let answer = try await relay.post(
                "records/modify",
                #"{"operations":[{"operationType":"create","record":{"recordName":"r\#(number)","#
                    + #""recordType":"Artwork","fields":{"year":{"value":\#(number)},"#
                    + #""text":{"value":"\#(text)"}}}}]}"#)
            #expect(answer.status == 200)
        }
    }

    private static func names(_ answer: TestRelay.Answer) -> [String] {
        guard case .array(let records)? = answer["records"] else { return [] }
        return records.compactMap { record in
            guard case .object(let object) = record, case .string(let name)? = object["recordName"]
            else { return nil }
            return name
        }
    }

    /// Fetches all pages of a query, and returns the names on each.
    private static func pages(_ relay: TestRelay, _ query: String) async throws -> [[String]] {
        var pages: [[String]] = []
        var marker = ""
        for _ in 0..<50 {
            let page = try await relay.post(
                "records/query", #"{"query":\#(query)\#(marker)}"#)
            #expect(page.status == 200, "\(page.text)")
            pages.append(names(page))
            guard case .string(let next)? = page["continuationMarker"] else { return pages }
            marker = #","continuationMarker":"\#(next)""#
        }
        Issue.record("the pages never end")
        return pages
    }

    @Test(arguments: [settings(rows: 2), settings(time: .zero)])
    func `a query at its row limit returns what it found and where to continue`(
        _ settings: QueryAdmission.Settings
    ) async throws {
        try await TestRelay.with(queries: settings) { relay in
            try await Self.fill(relay, 7)
            let pages = try await Self.pages(
                relay, #"{"recordType":"Artwork","predicate":"year > 3"}"#)
            #expect(pages.flatMap(\.self) == ["r4", "r5", "r6", "r7"])
            #expect(pages.count == (settings.rows == 2 ? 4 : 8))
            #expect(pages[0] == [])
        }
    }

    @Test func `an impossible order is refused with the reason and advice`() async throws {
        let sorted = #"{"query":{"recordType":"Artwork","sortBy":[{"fieldName":"year"}]}}"#
        try await TestRelay.with(queries: Self.settings(rows: 6)) { relay in
            try await Self.fill(relay, 7)
            let answer = try await relay.post("records/query", sorted)
            #expect(answer.status == 413)
            #expect(answer["serverErrorCode"] == "QUOTA_EXCEEDED")
            #expect(
                answer["reason"]
                    == .string(
                        "query.sortBy: sorting has to read all records of Artwork, but a query may "
                            + "read at most 6; omit sortBy and read all pages, or query a zone "
                            + "with fewer records"))
        }
        try await TestRelay.with(queries: Self.settings(time: .zero)) { relay in
            try await Self.fill(relay, 2)
            let answer = try await relay.post("records/query", sorted)
            #expect(answer.status == 429)
            #expect(answer["serverErrorCode"] == "THROTTLED")
            #expect(answer["retryAfter"] == 10)
        }
    }

    @Test func `a page has a limited number of bytes, ordered or not`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, 11, bytes: 900_000)
            let plain = try await Self.pages(relay, #"{"recordType":"Artwork"}"#)
            #expect(plain.map(\.count) == [4, 4, 3])
            #expect(Set(plain.flatMap(\.self)).count == 11)
            let sorted = try await Self.pages(
                relay,
                #"{"recordType":"Artwork","sortBy":[{"fieldName":"year","ascending":false}]}"#)
            #expect(sorted.map(\.count) == [4, 4, 3])
            #expect(sorted.flatMap(\.self) == (1...11).reversed().map { "r\($0)" })
        }
    }

    @Test func `a marker does not reveal which record was examined`() async throws {
        try await TestRelay.with(queries: Self.settings(rows: 1)) { relay in
            try await Self.fill(relay, 2)
            let answer = try await relay.post(
                "records/query", #"{"query":{"recordType":"Artwork"}}"#)
            guard case .string(let marker)? = answer["continuationMarker"],
                let bytes = Base64.decode(marker)
            else {
                Issue.record("\(answer.text)")
                return
            }
            #expect(!String(decoding: bytes, as: UTF8.self).contains("r1"))
            #expect(bytes.count > 28)
            // A marker that was tampered with is refused.
            var forged = bytes
            forged[20] ^= 1
            let refused = try await relay.post(
                "records/query",
                #"{"query":{"recordType":"Artwork"},"continuationMarker":"\#(Base64.encode(forged))"}"#
            )
            #expect(refused.status == 400)
        }
    }

    @Test func `a marker is valid for the database of its page`() async throws {
        let query = #"{"query":{"recordType":"Artwork"},"resultsLimit":1"#
        let modify =
            #"{"operations":[{"operationType":"create","record":{"recordName":"r1","#
            + #""recordType":"Artwork"}},{"operationType":"create","record":{"recordName":"r2","#
            + #""recordType":"Artwork"}}]}"#
        try await TestRelay.with { relay in
            for user in ["_alice", "_bob"] {
                let made = try await relay.post(
                    "records/modify", modify, user: user, database: "private")
                #expect(made.status == 200, "\(made.text)")
            }
            let page = try await relay.post("records/query", query + "}", database: "private")
            guard case .string(let marker)? = page["continuationMarker"] else {
                Issue.record("\(page.text)")
                return
            }
            let next = query + #","continuationMarker":"\#(marker)"}"#
            let own = try await relay.post("records/query", next, database: "private")
            #expect(Self.names(own) == ["r2"], "\(own.text)")
            let other = try await relay.post(
                "records/query", next, user: "_bob", database: "private")
            #expect(other.status == 400, "\(other.text)")
        }
    }

    @Test(arguments: Seeds.all) func `an ordered page equals that of a complete sort`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        let order = Self.order
        for _ in 0..<50 {
            let count = Int.random(in: 0...30, using: &generator)
            let all = (0..<count).map { number in
                Self.scanned(
                    number, year: Int64.random(in: 0...9, using: &generator),
                    bytes: Int.random(in: 1...50, using: &generator))
            }
            let limit = Int.random(in: 1...8, using: &generator)
            var page = RecordPage(order: order, limit: limit, after: nil, maximumBytes: 100)
            for scanned in all.shuffled(using: &generator) where page.wants(scanned.record) {
                _ = page.take(scanned)
            }
            let sorted = all.sorted {
                RecordQueryMarker($0.record, order: order)
                    .precedes(RecordQueryMarker($1.record, order: order), order)
            }
            var bytes = 0
            var expected: [ShadowRecord] = []
            for scanned in sorted {
                bytes += scanned.bytes
                guard expected.count < limit, bytes <= 100 || expected.isEmpty else { break }
                expected.append(scanned.record)
            }
            #expect(page.records == expected)
            #expect((page.boundary != nil) == (expected.count < all.count))
        }
    }

    @Test func `no equal record is lost among zones with names that look equal`()
        throws
    {
        let names = ["\u{E9}", "e\u{301}"]
        let zones = try names.map { try #require(ZoneID(zoneName: $0)) }
        let markers = zones.flatMap { zone in
            names.map {
                RecordQueryMarker(RecordID(recordName: known($0), zoneID: zone))
            }
        }
        for (one, first) in markers.enumerated() {
            for (other, second) in markers.enumerated() where one != other {
                #expect(first.precedes(second, []) != second.precedes(first, []))
            }
        }
    }

    private static var order: [RecordSortKey] {
        let type: RecordType = known("Artwork")
        var definition = RecordTypeDefinition(type)
        definition.fields["year"] = FieldDefinition(
            SchemaFieldType(.int64), uses: [.queryable, .sortable])
        let query = try? JSONReader(["sortBy": [["fieldName": "year"]]])
        return query.flatMap { try? RecordSortKey.read($0, definition) } ?? []
    }

    private static func scanned(_ number: Int, year: Int64, bytes: Int) -> ScannedRecord {
        let stamp = RecordStamp(at: TestRelay.now, userID: nil, deviceID: nil)
        let record = ShadowRecord(
            recordID: RecordID(recordName: known("r\(number)")), recordType: known("Artwork"),
            fields: ["year": .integer(year)], created: stamp, modified: stamp, source: .cloudKit,
            position: .start)
        return ScannedRecord(record: record, bytes: bytes)
    }

    // MARK: Records of which not all is known

    private static func part(_ number: Int, _ fields: RecordFields) -> ShadowRecord {
        let stamp = RecordStamp(at: TestRelay.now, userID: nil, deviceID: nil)
        var record = ShadowRecord(
            recordID: RecordID(recordName: known("r\(number)")), recordType: known("Artwork"),
            fields: fields, created: stamp, modified: stamp, source: .cloudKit, position: .start)
        record.isPartial = true
        return record
    }

    @Test(arguments: [
        ("year > 1900 OR NOT artist == 'a'", true), ("artist == 'a'", false),
        ("NOT artist == 'a'", false), ("artist == nil", false), ("year > 1900", true),
    ])
    func `the missing fields of a table's records are analysed once`(
        text: String, expected: Bool
    ) throws {
        let condition = try RecordCondition(try RecordPredicate(format: text))
        for number in 1...200 {
            // Fields that the condition does not read do not count as another form.
            let record = Self.part(
                number, ["year": .integer(1950), "other\(number)": .integer(1)])
            #expect(condition.holds(for: record, at: TestRelay.now) == expected)
        }
        #expect(condition.keptForms == (text.contains("artist") ? 1 : 0))
    }

    @Test(arguments: [
        ("SELF CONTAINS 'alice r1'", false), ("createdUserRecordName == 'alice'", true),
        ("ANYKEY == 'alice'", false), ("SELF CONTAINS 'marina'", true),
        ("SELF CONTAINS 'marina' AND recordName == 'r1'", true),
    ])
    func `a search over the whole record uses its own texts`(
        text: String, expected: Bool
    ) throws {
        var record = Self.part(1, ["title": .string("The Marina")])
        record.isPartial = false
        record.created.userID = known("alice")
        let condition = try RecordCondition(try RecordPredicate(format: text))
        #expect(condition.holds(for: record, at: TestRelay.now) == expected)
    }

    @Test func `cached forms of a condition are bounded and correct`() throws {
        let condition = try RecordCondition(
            try RecordPredicate(format: "SELF CONTAINS 'x' OR year > 1900"))
        for number in 1...(KnownForms.mostKept + 20) {
            let known = Self.part(number, ["year": .integer(1950), "f\(number)": .integer(1)])
            let unknown = Self.part(number, ["f\(number)": .integer(1)])
            #expect(condition.holds(for: known, at: TestRelay.now))
            #expect(!condition.holds(for: unknown, at: TestRelay.now))
        }
        #expect(condition.keptForms == KnownForms.mostKept)
    }

    // MARK: Places

    @Test func `no party can take all the places`() throws {
        let crowded = TestRelay.container
        let quiet = ContainerKey(container: known("quiet"), environment: .production)
        var places = QueryPlaces(total: 5)
        for _ in 0..<2 { try places.enter(.strangers, of: crowded, places: 4) }
        #expect(
            Self.refusal(&places, .strangers, crowded)
                == "2 queries of callers who are not signed in are already running; at most 2 are "
                + "allowed at a time"
        )
        try places.enter(.user(known("alice")), of: crowded, places: 4)
        try places.enter(.server, of: crowded, places: 4)
        #expect(
            Self.refusal(&places, .server, crowded)
                == "4 queries of the container are already running; at most 4 are allowed at a time"
        )
        // This takes the last place of the relay. A party without any place gets one more.
        try places.enter(.server, of: quiet, places: 4)
        #expect(
            Self.refusal(&places, .server, quiet)
                == "5 queries of the relay are already running; at most 5 are allowed at a time")
        let third = ContainerKey(container: known("third"), environment: .production)
        try places.enter(.strangers, of: third, places: 4)
        places.leave(.strangers, of: third)
        places.leave(.strangers, of: crowded)
        try places.enter(.strangers, of: crowded, places: 4)
        #expect(places.count == 5)
    }

    /// Returns why no further query may enter; `nil` if it may.
    private static func refusal(
        _ places: inout QueryPlaces, _ party: QueryParty, _ container: ContainerKey
    ) -> String? {
        do throws(APIError) {
            try places.enter(party, of: container, places: 4)
            return nil
        } catch {
            return error.code == .throttled && error.retryAfter == 1 ? error.reason : nil
        }
    }

    @Test(arguments: [(false, 499), (true, 503)])
    func `a query ends when its client or its relay does`(
        isRelaysEnd: Bool, status: Int
    ) async throws {
        let watch = ClientDeparture()
        let begun = AsyncStream.makeStream(of: Void.self)
        let query = Task {
            try await watch.ending {
                begun.continuation.yield()
                // The stream never yields: only cancellation ends it.
                for await _ in AsyncStream<Void>.makeStream().stream {}
                try Task.checkCancellation()
            }
        }
        for await _ in begun.stream.prefix(1) {}
        watch.happen(forRelaysEnd: isRelaysEnd)
        let error = await #expect(throws: APIError.self) { try await query.value }
        #expect(error?.httpStatus == status)
        // A client that disconnected earlier is not waited for either.
        await #expect(throws: APIError.self) {
            try await watch.ending { try Task.checkCancellation() }
        }
    }

    @Test func `the relay notices on the connection that a client has gone`() async throws {
        try await RunningRelay.with(["--queries-readers", "1", "--queries-seconds", "3600"]) {
            running in
            let store = running.relay.store
            let container = running.container.key
            let place = RecordPlace(container: container, database: .public, owner: nil)
            try await Self.createRecord(in: store, place)
            let gate = DispatchSemaphore(value: 0)
            let begun = AsyncStream.makeStream(of: Void.self)
            // Another task holds the only turn, so the query waits as long as the test wants.
            let other = Task {
                try await store.scanRecords(
                    RecordScan(of: known("Artwork"), in: place), into: ()
                ) { _, _ in
                    begun.continuation.yield()
                    gate.wait()
                    return false
                }
            }
            for await _ in begun.stream.prefix(1) {}
            let port = try await running.relay.ports.port(of: "http")
            let client = try await RawConnection.open(port)
            let body = #"{"query":{"recordType":"Artwork"}}"#
            try await client.send(
                "POST /database/1/\(container.container)/development/public/records/query"
                    + "?ckAPIToken=\(running.container.apiToken) HTTP/1.1\r\nHost: relay\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            try await Self.wait(until: 1, on: running.relay.queries, port)
            try await client.finish()
            try await Self.wait(until: 0, on: running.relay.queries, port)
            #expect(await client.hearAll().hasPrefix("HTTP/1.1 499"))
            gate.signal()
            _ = try await other.value
        }
    }

    private static func createRecord(in store: RelayStore, _ place: RecordPlace) async throws {
        let edit = RecordEdit(.create, RecordID(recordName: known("a")), type: known("Artwork"))
        _ = try await store.modify(
            [edit], in: place, by: RecordEditor(userID: nil, isServer: true),
            atomicity: .independent,
            additions: [RecordTypeDefinition(known("Artwork"), isInferred: true)],
            at: TestRelay.now)
    }

    /// Waits until `count` queries run, making other requests meanwhile.
    private static func wait(
        until count: Int, on admission: QueryAdmission, _ port: Int
    ) async throws {
        while admission.count != count {
            let connection = try await RawConnection.open(port)
            try await connection.send(
                "GET /healthz HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n")
            #expect(await connection.hearAll().hasPrefix("HTTP/1.1 200"))
        }
    }
}
