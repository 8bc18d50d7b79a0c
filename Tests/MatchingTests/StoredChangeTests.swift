import Matching
import PredicateLanguage
import RelayModel
import Testing

/// A change in the log is matched from its text, without decoding it first.
///
/// The answer must be that of the decoded change.
@Suite struct StoredChangeTests {
    private static let appended = Timestamp(seconds: 1_700_000_000)

    /// Matches the text of a change both ways, and compares the answers.
    ///
    /// Returns whether the text was read. One that names readers may be given up, once its
    /// conditions take long.
    @discardableResult
    private func check(
        _ text: String, on index: SubscriptionIndex, _ place: String
    ) throws -> Bool {
        let read = try RecordChange(storedForm: try JSONValue(parsing: text))
        let expected =
            read.isSnapshot
            ? [] : index.matches(for: read, now: read.occurredAt ?? Self.appended)
        var found: [UInt64] = [7]
        let isRead = index.matches(
            forStored: text, appendedAt: Self.appended, into: &found)
        #expect(isRead || read.readers != nil, "\(place): \(text)")
        #expect(found == (isRead ? expected : []), "\(place): \(text)")
        return isRead
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a stored change fires the same as the decoded change`(seed: UInt64) throws {
        var world = RandomWorld(seed: seed)
        let index = SubscriptionIndex(seed: seed &* 31)
        for serial in 0..<400 as Range<UInt64> { index.insert(world.subscription(serial)) }
        var readCount = 0
        for round in 0..<200 {
            var change = try world.change()
            if world.generator.holds(oneIn: 3) { change.occurredAt = Timestamp(seconds: 5) }
            if world.generator.holds(oneIn: 9) { change.isSnapshot = true }
            change.readers = world.generator.holds(oneIn: 4) ? ["ada", "\"{[,"] : nil
            if world.generator.holds(oneIn: 5) { change.after?.fields["ti\"tle é"] = .string("x") }
            let isRead = try check(
                JSONValue.object(change.storedForm).text, on: index,
                "seed \(seed), round \(round)")
            if isRead { readCount += 1 }
        }
        #expect(readCount > 150)
    }

    @Test(arguments: [
        #""plain""#, #""with \" and \\ and é""#, #""\u0041rt""#, #""e\u0301""#, #""漢字 \n""#, "0",
        "-0", "-0.0", "12", "0.1", "-17.25", "1e3", "1.5E-7", "123456789012345678",
        "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.30000000000000004",
        "123456789.123456789", "true", "false", "null", "[]",
        #"["a","b\"",3,null,[1,"a"],{"x":1}]"#,
        #"{"$ts":[1700000000,5]}"#, #"{"$ts":[-3,0]}"#, #"{"$ref":"r"}"#, #"{"$geo":[1,2]}"#,
        #"{"$set":["a","b"]}"#, #"{"a":"b"}"#, #"{"$map":{"$a":1}}"#, #"{"$bytes":"AAE="}"#, "{}",
    ])
    func `every form of a value is read`(value: String) throws {
        let index = SubscriptionIndex(seed: 5)
        let json = try FieldValue(notation: try JSONValue(parsing: value))
        var predicates: [RecordPredicate.Node] = [
            .comparison(.init(.field("field with a name"), .equal, .constant(json)))
        ]
        for bound in [-1e9, 0, 0.1, 11.5, 1e9, 1e18] {
            predicates.append(
                .comparison(.init(.field("n"), .greaterOrEqual, .constant(.double(bound)))))
        }
        for text in ["a", "b", "plain", "Art", "é", "with \" and \\ and é"] {
            let constant = RecordPredicate.Expression.constant(.string(text))
            predicates.append(.comparison(.init(.field("n"), .equal, constant)))
            predicates.append(.comparison(.init(.field("n"), .contains, constant)))
            predicates.append(.comparison(.init(.field("n"), .like, constant)))
        }
        let owner = try #require(UserID(rawValue: "ada"))
        let type = try #require(RecordType(rawValue: "Art"))
        for (serial, node) in predicates.enumerated() {
            index.insert(
                IndexedSubscription(
                    serial: UInt64(serial), database: .public, owner: owner, recordType: type,
                    predicate: RecordPredicate(node)))
        }
        let fields = #""a":{"deep":[{"x":"}"}]},"field with a name":\#(value),"n":\#(value)"#
        try check(
            #"{"op":"update","type":"Art","name":"r","db":"public","before":{"full":{"n":1}},"#
                + #""after":{"full":{\#(fields)}},"keys":["n"],"version":3}"#, on: index, value)
    }

    @Test(arguments: [
        "", "{", "[]", #"{"op":"create"}"#, #"{"type":"Art","op":"create","#,
        #"{"op":"steal","type":"Art","name":"r","db":"public"}"#,
        #"{"op":"create","after":{"full":{}},"type":"Art","name":"r","db":"public"}"#,
        #"{"op":"create","type":"Art","name":"r","db":"public","after":{"full":{"n":"x}}}"#,
        #"{"op":"create","type":"Art","name":"r","db":"elsewhere","after":{"full":{"n":1}}}"#,
        #"{"op":"create","type":"Art","name":"r","db":"public","after":{"full":{"n":1}}} "#,
    ])
    func `a text of another form is left to the decoder`(text: String) throws {
        let index = SubscriptionIndex(seed: 5)
        let owner = try #require(UserID(rawValue: "ada"))
        index.insert(
            IndexedSubscription(
                serial: 1, database: .public, owner: owner,
                recordType: RecordType(rawValue: "Art"),
                predicate: RecordPredicate(
                    .comparison(.init(.field("n"), .equal, .constant(.integer(1)))))))
        var found: [UInt64] = []
        let isRead = index.matches(
            forStored: text, appendedAt: Self.appended, into: &found)
        #expect(!isRead)
    }
}
