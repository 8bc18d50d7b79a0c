import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

/// Conditions on the system fields, whose values come from the relay and never from a client's
/// fields.
@Suite struct SystemFieldTests {
    private static let moment = Timestamp(seconds: 1_700_000_000)
    private static let earlier = RecordTrace(
        at: Timestamp(seconds: 1_600_000_000), userID: Fixtures.identifier("ada"))
    private static let later = RecordTrace(
        at: Timestamp(seconds: 1_650_000_000), userID: Fixtures.identifier("bob"))

    /// Returns a change whose own fields have a forged value under every name of a system field.
    private static func change(
        _ operation: ChangeOperation, _ name: String = "r1", user: String? = "cyd",
        isKept: Bool = true, isPartial: Bool = false
    ) -> RecordChange {
        var fields: RecordFields = ["artist": .string("x")]
        for field in SystemField.allCases {
            for name in field.names { fields[name] = .string("forged") }
        }
        var change = Fixtures.change(operation, name, fields: fields)
        if operation == .update { change.before = RecordImage(fields) }
        if isPartial { change.after?.completeness = .partial }
        change.origin.userID = user.map { Fixtures.identifier($0) }
        change.occurredAt = moment
        if isKept, operation != .create {
            change.created = earlier
            change.formerlyModified = later
        }
        return change
    }

    private static func subscription(
        _ serial: UInt64, _ format: String, firesOn: FiresOn = .all
    ) throws -> IndexedSubscription {
        IndexedSubscription(
            serial: serial, database: .public, owner: Fixtures.identifier("me"),
            recordType: Fixtures.identifier("Artwork"), firesOn: firesOn,
            predicate: try RecordPredicate(format: format))
    }

    /// Returns whether a condition fires; the change and its text must give the same answer.
    private func fires(_ format: String, on change: RecordChange) throws -> Bool {
        let index = SubscriptionIndex(seed: 3)
        index.insert(try Self.subscription(1, format))
        index.insert(try Self.subscription(2, "TRUEPREDICATE"))
        let found = index.matches(for: change, now: change.occurredAt)
        var stored: [UInt64] = []
        let isRead = index.matches(
            forStored: try change.storedText(), appendedAt: Self.moment, into: &stored)
        #expect(isRead)
        #expect(found == stored, "\(format)")
        #expect(found.contains(2))
        return found.contains(1)
    }

    @Test(arguments: [
        "recordName == 'r1'", "recordName BEGINSWITH 'r'", "recordName IN {'r1', 'r2'}",
        "recordName LIKE[c] 'R*'", "recordID == CAST('r1', 'CKReference')",
        "___recordID == CAST('r1', 'CKReference')", "modificationDate > CAST(0, 'NSDate')",
        "___modTime == modifiedTimestamp", "modifiedUserRecordName == 'cyd'",
        "___modifiedBy == CAST('cyd', 'CKReference')", "lastModifiedUserRecordName != 'ada'",
        "NOT recordName == 'r2'", "recordName == 'r1' AND artist == 'x'",
        "artist == 'nobody' OR recordName == 'r1'", "recordName.length == 2",
    ])
    func `a condition on fields that are always known fires`(format: String) throws {
        for operation in [ChangeOperation.create, .update] {
            #expect(try fires(format, on: Self.change(operation)), "\(format)")
            #expect(try fires(format, on: Self.change(operation, isKept: false)), "\(format)")
        }
        #expect(try fires(format, on: Self.change(.update, isPartial: true)), "\(format)")
    }

    @Test(arguments: [
        ("creationDate < CAST(700000000, 'NSDate')", "creationDate > CAST(700000000, 'NSDate')"),
        ("createdUserRecordName == 'ada'", "creatorUserRecordName == 'cyd'"),
        (
            "___createdBy == CAST('ada', 'CKReference')",
            "NOT ___createdBy == CAST('ada', 'CKReference')"
        ),
        ("creatorUserRecordID != CAST('cyd', 'CKReference')", "___createTime != createdTimestamp"),
    ])
    func `the creator and creation date are known for creations and kept records`(
        kept: String, created: String
    ) throws {
        #expect(try fires(kept, on: Self.change(.update)))
        #expect(try fires(kept, on: Self.change(.delete)))
        for format in [kept, created] {
            for operation in [ChangeOperation.update, .delete] {
                #expect(
                    try !fires(format, on: Self.change(operation, isKept: false)),
                    "\(format): unknown, and so is its contrary")
            }
        }
    }

    @Test func `a deletion is judged by the record as it was`() throws {
        let created = Self.change(.create)
        #expect(try fires("createdUserRecordName == 'cyd'", on: created))
        #expect(try fires("creationDate == modificationDate", on: created))
        #expect(try fires("createdUserRecordName == nil", on: Self.change(.create, user: nil)))
        let deleted = Self.change(.delete)
        #expect(try fires("modifiedUserRecordName == 'bob'", on: deleted))
        #expect(try fires("modificationDate < CAST(700000000, 'NSDate')", on: deleted))
        #expect(try !fires("modifiedUserRecordName == 'cyd'", on: deleted))
        let unkept = Self.change(.delete, isKept: false)
        #expect(try !fires("modificationDate > CAST(0, 'NSDate')", on: unkept))
        var own = Self.change(.create, user: nil)
        own.database = .private
        own.owner = Fixtures.identifier("dee")
        #expect(own.systemValue(.creatorName, in: .after, at: Self.moment) == .string("dee"))
    }

    @Test(arguments: [
        "recordName == 'forged'", "createdUserRecordName == 'forged'", "___createdBy == 'forged'",
        "creationDate == 'forged'", "modifiedUserRecordName BEGINSWITH 'forg'",
        "recordName LIKE[c] 'FORGED'",
    ])
    func `client fields with a system field's name are not read`(format: String) throws {
        for operation in ChangeOperation.allCases {
            for isKept in [true, false] {
                #expect(try !fires(format, on: Self.change(operation, isKept: isKept)))
            }
        }
    }

    /// A database may tell only which row was deleted, and show nothing of its fields.
    @Test(arguments: [
        ("TRUEPREDICATE", true), ("recordName == 'r1'", true), ("recordName == 'r2'", false),
        ("recordName == 'r1' OR artist == 'x'", true), ("artist == nil", false),
        ("NOT artist == 'x'", false), ("recordName == 'r1' AND NOT artist == 'x'", false),
    ])
    func `a deletion without an image satisfies conditions that read no fields`(
        format: String, expected: Bool
    ) throws {
        var change = Self.change(.delete, isKept: false)
        change.before = nil
        #expect(try fires(format, on: change) == expected)
        let judged = try RecordPredicate(format: format).judged(change, at: Self.moment)
        let outcome = judged.predicate.evaluate(on: judged.fields, now: Self.moment)
        #expect((outcome == .true) == expected)
    }

    /// A search for words covers the record's own texts.
    ///
    /// It leaves out the system fields, which contain names of records and users, whatever else
    /// the condition asks. It leaves out columns of such a name too.
    @Test(arguments: [
        ("SELF CONTAINS 'forged cyd r1 ada'", false), ("ANYKEY == 'forged'", false),
        ("SELF CONTAINS 'forged cyd r1' OR recordName == 'r2'", false),
        ("SELF CONTAINS 'cyd' AND modifiedUserRecordName == 'cyd'", false),
        ("allTokens TOKENMATCHES[cdl] 'cyd forged' AND recordName == 'r1'", false),
        ("ANYKEY == 'cyd' OR createdUserRecordName == 'nobody'", false),
        ("SELF CONTAINS 'x'", true), ("SELF CONTAINS 'x' AND recordName == 'r1'", true),
        ("NOT SELF CONTAINS 'forged' AND modifiedUserRecordName == 'cyd'", true),
        ("ANYKEY == 'x' AND recordName == 'r1'", true),
    ])
    func `a search over the whole record skips system fields`(format: String, expected: Bool) throws
    {
        for operation in [ChangeOperation.create, .update] {
            let change = Self.change(operation)
            #expect(try fires(format, on: change) == expected, "\(format)")
            let predicate = try RecordPredicate(format: format)
            let judged = predicate.judged(change, at: Self.moment)
            let outcome = judged.predicate.evaluate(on: judged.fields, now: Self.moment)
            #expect((outcome == .true) == expected, "\(format)")
        }
    }

    @Test(arguments: Seeds.all)
    func `the index agrees with the reference evaluation`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let parts = [
            "recordName == 'r1'", "recordName BEGINSWITH 'r'", "artist == 'x'", "artist != 'x'",
            "creationDate > CAST(700000000, 'NSDate')", "createdUserRecordName IN {'ada', 'bob'}",
            "modificationDate < CAST(700000000, 'NSDate')", "NOT ___modifiedBy == nil",
            "recordID == CAST('r2', 'CKReference')", "createdUserRecordName LIKE[c] 'A*'",
            "creatorUserRecordName == modifiedUserRecordName", "price BETWEEN {1, 5}",
            "SELF CONTAINS 'forged'", "SELF CONTAINS 'x'", "SELF CONTAINS 'ada r1'",
            "ANYKEY == 'forged'", "ANYKEY == 'x'",
        ]
        let index = SubscriptionIndex(seed: seed)
        var subscriptions: [IndexedSubscription] = []
        for serial in 0..<200 as Range<UInt64> {
            var format = parts.randomElement(using: &generator) ?? ""
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                let word = generator.chance(50) ? "AND" : "OR"
                let not = generator.chance(30) ? "NOT " : ""
                let part = parts.randomElement(using: &generator) ?? ""
                format = "(\(format)) \(word) \(not)(\(part))"
            }
            let subscription = try Self.subscription(serial, format)
            subscriptions.append(subscription)
            index.insert(subscription)
        }
        for number in 0..<60 {
            let operation = ChangeOperation.allCases[number % 3]
            let change = Self.change(
                operation, generator.chance(50) ? "r1" : "r2",
                user: ["ada", "cyd", nil].randomElement(using: &generator) ?? nil,
                isKept: generator.chance(50), isPartial: generator.chance(30))
            let expected = subscriptions.filter { subscription in
                guard let judged = subscription.predicate?.judged(change, at: Self.moment) else {
                    return false
                }
                return judged.predicate.evaluate(on: judged.fields, now: Self.moment) == .true
            }.map(\.serial)
            #expect(index.matches(for: change, now: Self.moment) == expected)
            var stored: [UInt64] = []
            _ = index.matches(
                forStored: try change.storedText(), appendedAt: Self.moment, into: &stored)
            #expect(stored == expected)
            let image = try SubscriptionIndex(image: index.image())
            #expect(image.matches(for: change, now: Self.moment) == expected)
        }
    }
}
