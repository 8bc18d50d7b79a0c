import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import RelayServer

/// Bounds on what the administrator of one container can make the relay store and do.
@Suite struct AdministrationBoundsTests {
    private static let container = "containers/iCloud.com.example.Art/development"

    /// Runs `body` for many numbers at a time, so that the store commits many of the changes
    /// together.
    private static func each(
        _ numbers: Range<Int>, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in numbers { group.addTask { try await body(number) } }
            try await group.waitForAll()
        }
    }

    @Test func `checking a token compares few keys and rejects a short secret early`() async throws
    {
        try await TestRelay.with { relay in
            func refusal(_ tokens: JSONValue) async throws -> String {
                let body: JSONValue = ["userTokens": tokens]
                let answer = try await relay.admin(.patch, Self.container, body.text)
                #expect(answer.status == 400)
                return answer.text
            }
            let key = try JSONValue(parsing: TestKeys.rsaKeySet)
            guard case .object(let set) = key, case .array(let keys)? = set["keys"] else {
                Issue.record("no key set")
                return
            }
            let many = Array(repeating: keys[0], count: 51)
            let tooMany = try await refusal(["keySet": ["keys": .array(many)]])
            #expect(tooMany.contains("userTokens.keySet: must have at most 50 keys, found 51"))
            let long = JSONValue.string(String(repeating: "x", count: 65_536))
            let tooLong = try await refusal(["keySet": ["keys": .array(keys), "note": long]])
            #expect(tooLong.contains("userTokens.keySet: must be at most 65536 bytes"))
            let secret = String(repeating: "s", count: 8193)
            let tooLarge = try await refusal(["sharedSecret": .string(secret)])
            #expect(tooLarge.contains("userTokens.sharedSecret: must be at most 8192 bytes"))
            let fitting: JSONValue = [
                "userTokens": ["keySet": ["keys": .array(Array(many.prefix(50)))]]
            ]
            let saved = try await relay.admin(.patch, Self.container, fitting.text)
            #expect(saved.status == 200, "\(saved.text)")
        }
    }

    @Test func `the number of a container's active and revoked keys is limited`()
        async throws
    {
        try await TestRelay.with { relay in
            let store = relay.store
            @Sendable func key(_ name: String, revoked: Int? = nil) -> AccessKey {
                var key = AccessKey(
                    id: name, container: TestRelay.container, kind: .bearer, verifier: name,
                    label: "l", createdAt: TestRelay.now)
                key.revokedAt = revoked.map { TestRelay.now.advanced(by: .seconds(Int64($0))) }
                return key
            }
            try await Self.each(0..<1010) { number in
                try await store.save(key("revoked\(number)", revoked: number))
            }
            let revoked = try await store.accessKeys(of: TestRelay.container)
                .filter { $0.revokedAt != nil }
            #expect(revoked.count == 1000)
            #expect(!revoked.contains { $0.id == "revoked0" })
            let before = try await store.accessKeys(of: TestRelay.container)
                .count { $0.revokedAt == nil }
            try await Self.each(before..<KeyAdministration.mostKeys) { number in
                try await store.save(key("live\(number)"))
            }
            let body = #"{"kind":"bearer"}"#
            let refused = try await relay.admin(.post, Self.container + "/keys", body)
            #expect(refused.status == 413, "\(refused.text)")
            #expect(refused.text.contains("at most 1000 access keys: revoke one first"))
            let gone = try await relay.admin(
                .delete, Self.container + "/keys/live\(KeyAdministration.mostKeys - 1)")
            #expect(gone.status == 200)
            // Of eight keys that are created at the same time, only one is within the bound.
            let statuses: [Int] = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await relay.admin(.post, Self.container + "/keys", body).status
                    }
                }
                var found: [Int] = []
                for try await status in group { found.append(status) }
                return found
            }
            #expect(statuses.sorted() == [201] + Array(repeating: 413, count: 7))
            let live = try await store.accessKeys(of: TestRelay.container)
                .count { $0.revokedAt == nil }
            #expect(live == KeyAdministration.mostKeys)
        }
    }

    @Test func `the number and size of a container's sources are limited`() async throws {
        try await TestRelay.with { relay in
            let store = relay.store
            @Sendable func source(_ name: String, bytes: Int) -> StoredSource {
                StoredSource(
                    container: TestRelay.container, name: known(name),
                    definition: ["text": .string(String(repeating: "x", count: bytes))],
                    savedAt: TestRelay.now)
            }
            let body = #"{"preset":"belfry","verification":{"scheme":"none"}}"#
            let former = try await relay.admin(.put, Self.container + "/sources/former", body)
            #expect(former.status == 201, "\(former.text)")
            for number in 0..<16 {
                try await store.save(source("large\(number)", bytes: 1 << 20))
            }
            let tooMuch = try await relay.admin(.put, Self.container + "/sources/one", body)
            #expect(tooMuch.status == 413, "\(tooMuch.text)")
            #expect(tooMuch.text.contains("have at most 16777216 bytes together"))
            for number in 0..<16 {
                try await store.save(source("large\(number)", bytes: 1))
            }
            try await Self.each(16..<SourceAdministration.mostSources) { number in
                try await store.save(source("small\(number)", bytes: 1))
            }
            let tooMany = try await relay.admin(.put, Self.container + "/sources/one", body)
            #expect(tooMany.status == 413, "\(tooMany.text)")
            #expect(tooMany.text.contains("a container has at most 1000 change sources"))
            // The store now holds 1001 sources; an existing one may still be changed.
            let changed = try await relay.admin(.put, Self.container + "/sources/former", body)
            #expect(changed.status == 200, "\(changed.text)")
        }
    }

    private final class Note: Sendable {
        private let state = Mutex(false)
        var isMade: Bool { state.withLock { $0 } }
        func make() { state.withLock { $0 = true } }
    }

    @Test func `two calls with a container's tokens are answered at a time`() async throws {
        try await TestRelay.with { relay in
            let place = #""container":"iCloud.com.example.Art","environment":"development""#
            let made = try await relay.admin(
                .post, "tokens", #"{"label":"t","access":"read",\#(place)}"#)
            guard case .string(let secret)? = made["secret"] else {
                Issue.record("no token: \(made.text)")
                return
            }
            let line = relay.dependencies.administrationLine
            let note = Note()
            let own: Task<Int, any Error> = try await line.turn(of: TestRelay.container) {
                try await line.turn(of: TestRelay.container) {
                    let own: Task<Int, any Error> = Task {
                        let answer = try await relay.call(
                            .get, "/admin/1/\(Self.container)",
                            headers: ["Authorization": "Bearer \(secret)"])
                        note.make()
                        return answer.status
                    }
                    let others = try await relay.admin(.get, Self.container)
                    #expect(others.status == 200)
                    let waits = await Turns.keeps { !note.isMade }
                    #expect(waits)
                    return own
                }
            }
            #expect(try await own.value == 200)
        }
    }

    @Test func `keeping types creates no more types than a schema may have`()
        async throws
    {
        try await TestRelay.with { relay in
            let types = (0..<Limits.maximumRecordTypes).map { number in
                RecordTypeDefinition(known("T\(number)"), isInferred: true)
            }
            try await relay.store.replaceSchema(
                of: TestRelay.container, with: ContainerSchema(types), at: TestRelay.now)
            let path = Self.container + "/schema/recordTypes/"
            let refused = try await relay.admin(.post, path + "Another", #"{"shadow":true}"#)
            #expect(refused.status == 413, "\(refused.text)")
            let kept = try await relay.admin(.post, path + "T7", #"{"shadow":true}"#)
            #expect(kept.status == 200, "\(kept.text)")
        }
    }

    @Test func `the number of a schema's fields is limited in JSON and in text`() throws {
        let fields = (0..<Limits.maximumFieldsPerRecord).map { number in
            ("f\(number)", FieldDefinition(.init(.int64)))
        }
        let most = Limits.maximumFieldsPerSchema / Limits.maximumFieldsPerRecord
        let types = (0...most).map { number in
            RecordTypeDefinition(
                known("T\(number)"), fields: Dictionary(uniqueKeysWithValues: fields))
        }
        let fits = ContainerSchema(Array(types.dropLast()))
        #expect(try ContainerSchema(json: .object(fits.json)).recordTypes.count == most)
        #expect(try SchemaText.parse(SchemaText.text(of: fits)).recordTypes.count == most)
        let large = ContainerSchema(types)
        #expect(throws: JSONContractError.self) { try ContainerSchema(json: .object(large.json)) }
        #expect(throws: SchemaTextError.self) { try SchemaText.parse(SchemaText.text(of: large)) }
    }
}
