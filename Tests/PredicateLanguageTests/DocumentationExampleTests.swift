import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// The examples in the doc comments of public types, line by line.
///
/// A test of the project's rules checks that both are the same.
@Suite struct DocumentationExampleTests {
    let container: ContainerKey
    let alice: UserID

    init() throws {
        container = ContainerKey(
            container: try #require(ContainerID(rawValue: "com.example.Art")),
            environment: .development)
        alice = try #require(UserID(rawValue: "alice"))
    }

    @Test func `a condition is read, printed and judged`() throws {
        let condition = try RecordPredicate(format: "artist == %@", arguments: [.string("a-1")])
        #expect(condition.canonicalText == #"artist == "a-1""#)
        #expect(condition.evaluate(on: ["artist": .string("a-1")], engine: RE2Engine()) == .true)
        #expect(condition.evaluate(on: [:], engine: RE2Engine()) == .false)
    }

    @Test func `a condition is prepared once and judged often`() throws {
        let condition = try RecordPredicate(rql: #"title TEXT 'water' OR year > 1900"#)
        let prepared = try PreparedPredicate(condition, engine: RE2Engine())
        let years: [Int64] = [1872, 1916]
        let outcomes = years.map { prepared.evaluate(on: ["year": .integer($0)]) }
        #expect(outcomes == [.false, .true])
    }

    @Test func `a condition is built in Swift`() throws {
        let condition = RecordPredicate.where { $0.artist == "a-1" && $0.price < 100 }
        let written = try RecordPredicate(format: #"artist == "a-1" AND price < 100"#)
        #expect(condition == written)
    }

    @Test func `a schema refuses what can never hold`() throws {
        let schema = RecordSchema(["price": RecordSchema.Field(.integer)])
        let condition = try RecordPredicate(format: "prize < 100")
        #expect(throws: PredicateError.self) {
            try condition.check(schema: schema, engine: RE2Engine())
        }
    }

    @Test func `a trace explains the answer`() throws {
        let condition = try RecordPredicate(format: "price < 100")
        let prepared = try PreparedPredicate(condition, engine: RE2Engine())
        let trace = prepared.trace(onValue: .map(["price": .integer(120)]))
        #expect(trace.text == "`price < 100` is false: price is 120")
    }

    @Test func `values have kinds`() throws {
        let fields: RecordFields = [
            "title": .string("Lilies"), "sizes": .list([.integer(1)]),
        ]
        #expect(fields["title"]?.kind == "a text")
        #expect(fields["sizes"]?.kind == "a list")
    }

    @Test func `a change carries what is judged`() throws {
        let artwork = try #require(RecordType(rawValue: "Artwork"))
        let name = try #require(RecordName(rawValue: "a1"))
        var change = RecordChange(.create, of: artwork, RecordID(recordName: name))
        change.after = RecordImage(["artist": .string("a-1")])
        #expect(change.judgedImage?.fields["artist"] == .string("a-1"))
    }

    @Test func `a subscription to every artwork of one artist`() throws {
        let artwork = try #require(RecordType(rawValue: "Artwork"))
        let condition = try RecordPredicate(format: #"artist == "a-1""#)
        let subscription = Subscription(
            id: try #require(SubscriptionID(rawValue: "new-artworks")),
            container: container, database: .public, owner: alice,
            scope: .query(
                SubscriptionQuery(
                    recordType: artwork, form: .predicate, source: #"artist == "a-1""#,
                    canonical: condition.canonicalText),
                zoneID: nil),
            firesOn: [.create, .update])
        #expect(!subscription.firesOn.contains(.delete))
    }

    @Test func `an alert with a sound, or a silent push`() throws {
        var info = NotificationInfo()
        info.shouldSendContentAvailable = true
        #expect(!info.isVisible)
        info.alertBody = "A new artwork by your favourite artist"
        info.soundName = "default"
        #expect(info.isVisible)
    }

    @Test func `a device hides its token`() throws {
        let token = try #require(DeviceToken(rawValue: String(repeating: "0f", count: 32)))
        let phone = Device(
            id: try #require(DeviceID(rawValue: "alice-phone")), container: container, owner: alice,
            gatewayEnvironment: .development, token: token, topic: "com.example.Art")
        #expect("\(phone.token)" == "0f0f…(64)")
    }
}
