import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Zones are read and answered a page at a time.
@Suite struct ZonePageTests {
    private static let place = RecordPlace(
        container: TestRelay.container, database: .private, owner: known("_alice"))

    private static func create(_ relay: TestRelay, _ numbers: Range<Int>) async throws {
        let names = numbers.map { "z\(String($0 + 10_000).dropFirst())" }
        _ = try await relay.store.createZones(
            names.compactMap { ZoneID(zoneName: $0) }, in: place)
    }

    private static func delete(_ relay: TestRelay, _ name: String) async throws {
        let zoneID = try #require(ZoneID(zoneName: name))
        let deletion = try await relay.store.deleteZone(
            zoneID, in: place, by: RecordEditor(userID: known("_alice"), isServer: false),
            limit: 32, from: nil, at: TestRelay.now)
        #expect(deletion == .done)
    }

    private static func text(_ value: JSONValue?) -> String? {
        if case .string(let text)? = value { text } else { nil }
    }

    /// Returns the names of an answer's zones, with an exclamation mark after deleted ones.
    private static func names(_ answer: TestRelay.Answer) -> [String] {
        guard case .array(let zones)? = answer["zones"] else { return [] }
        return zones.compactMap { zone in
            text(zone.value(at: ["zoneID", "zoneName"])).map {
                zone.value(at: ["deleted"]) == true ? $0 + "!" : $0
            }
        }
    }

    /// Returns the names on each page of changes since a token, and the last page's token.
    private static func changes(
        _ relay: TestRelay, _ path: String, since token: String?,
        meanwhile: (Int) async throws -> Void = { _ in }
    ) async throws -> (pages: [[String]], token: String?) {
        var token = token
        var pages: [[String]] = []
        while pages.count < 9 {
            let body = token.map { #"{"syncToken":"\#($0)"}"# } ?? "{}"
            let answer = try await relay.post(path, body, database: "private")
            #expect(answer.status == 200, "\(answer.text)")
            pages.append(names(answer))
            token = text(answer["syncToken"])
            guard answer["moreComing"] == true else { break }
            try await meanwhile(pages.count)
        }
        return (pages, token)
    }

    @Test(arguments: ["changes/database", "zones/changes"])
    func `changes of zones come in pages, each zone once`(path: String) async throws {
        try await TestRelay.with { relay in
            try await Self.create(relay, 0..<2300)
            let first = try await Self.changes(relay, path, since: nil)
            #expect(first.pages.map(\.count) == [1000, 1000, 300])
            #expect(Set(first.pages.joined()).count == 2300)
            let nothing = try await Self.changes(relay, path, since: first.token)
            #expect(nothing.pages == [[]])
            try await Self.delete(relay, "z0005")
            try await Self.create(relay, 2300..<2302)
            let next = try await Self.changes(relay, path, since: nothing.token)
            #expect(next.pages == [["z0005!", "z2300", "z2301"]])
            // A client that starts without a token is not told of deleted zones.
            let anew = try await Self.changes(relay, path, since: nil)
            #expect(Set(anew.pages.joined()).count == 2301)
        }
    }

    @Test func `changes made while the pages are fetched come afterwards`() async throws {
        try await TestRelay.with { relay in
            try await Self.create(relay, 0..<2001)
            var all = try await Self.changes(relay, "changes/database", since: nil) { page in
                try await Self.delete(relay, page == 1 ? "z0001" : "z2000")
                try await Self.create(relay, 3000 + page..<3001 + page)
            }
            all.pages += try await Self.changes(relay, "changes/database", since: all.token).pages
            var seen: Set<String> = []
            for name in all.pages.joined() {
                if name.hasSuffix("!") {
                    seen.remove(String(name.dropLast()))
                } else {
                    seen.insert(name)
                }
            }
            #expect(seen.count == 2001)
            #expect(!seen.contains("z0001") && !seen.contains("z2000"))
            #expect(seen.contains("z3001") && seen.contains("z3002"))
        }
    }

    @Test func `a list of zones that is too long for one answer continues`() async throws {
        try await TestRelay.with { relay in
            try await Self.create(relay, 0..<10)
            try await Self.delete(relay, "z0003")
            let page = try await relay.store.zonePage(
                of: Self.place, after: nil, PageBounds(rows: 4))
            #expect(page.hasMore)
            #expect(page.elements.map(\.zoneID.zoneName) == ["z0000", "z0001", "z0002", "z0004"])
            let small = try await relay.store.zonePage(
                of: Self.place, after: nil, PageBounds(rows: 100, bytes: 600))
            #expect(small.hasMore && small.elements.count == 3)

            let target = TestRelay.path + "/private/zones/list" + TestRelay.query()
            let names = Self.names(try await relay.call(.get, target))
            #expect(names.count == 10 && names.first == "_defaultZone")
            // The marker says that `z0004` is the last zone that the client has seen.
            let marker = Base64.encode(Array("\nz0004".utf8))
            let rest = try await relay.call(.get, "\(target)&continuationMarker=\(marker)")
            #expect(Self.names(rest) == ["z0005", "z0006", "z0007", "z0008", "z0009"])
            let bad = try await relay.call(.get, "\(target)&continuationMarker=AAAA")
            #expect(bad.status == 400)
        }
    }

    /// As Swift strings, half a million marks would be sorted before each comparison, which takes
    /// minutes.
    @Test(.timeLimit(.minutes(5)), arguments: ["changes/database", "zones/changes"])
    func `a token of combining marks is refused like any other`(path: String) async throws {
        let marks = String(repeating: "\u{323}\u{301}", count: 250_000)
        let token = Base64.encode(Array("\(marks):0:0:0".utf8))
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                path, #"{"syncToken":"\#(token)"}"#, database: "private")
            #expect(answer.status == 400)
            #expect(answer.text.contains("belongs to another database or zone"))
        }
    }

    @Test func `a look-up finds the default zone and existing zones only`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.create(relay, 0..<3)
            try await Self.delete(relay, "z0001")
            let answer = try await relay.post(
                "zones/lookup", #"{"zones":["z0000","z0001","_defaultZone","none"]}"#,
                database: "private")
            let codes = (0..<4).map {
                Self.text(answer.json.value(at: ["zones", "\($0)", "serverErrorCode"]))
            }
            #expect(codes == [nil, "ZONE_NOT_FOUND", nil, "ZONE_NOT_FOUND"], "\(answer.text)")
        }
    }
}
