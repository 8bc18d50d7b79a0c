import CMalloc
import PredicateLanguage
import RelayModel
import Testing

@testable import Matching

/// The estimate of a condition's memory must not be below what it really takes.
@Suite struct ConditionRoomTests: ArtworkSuite {
    /// A comparison of each kind, and the number of such comparisons in one condition.
    ///
    /// `#` stands for the number of the condition, `~` for that of the comparison, and `LIST` for
    /// a list with the given number of texts.
    static let kinds = [
        "artist == 'x#-~'|1", "artist == 'x#-~'|300", "price == #~|300", "f~ == #|400",
        "price BETWEEN {#, 9#}|1", "price > # AND size < 9#~|2", "NOT price > #~|200",
        "title LIKE 'x#-~*y'|200", "title LIKE[c] 'x#-~'|1", "title LIKE[c] 'x#-~'|200",
        "title LIKE[cd] '*b?ö#-~*'|100",
        "title LIKE[cd] '*a pattern of sixty-four and more characters, which is another #-~ ?*'|50",
        "title CONTAINS[cd] 'a longer text that is looked for in others, #-~'|100",
        "title CONTAINS 'a longer text that is looked for in others, #-~'|100",
        "title ENDSWITH 'the end #-~'|1", "title BEGINSWITH[c] 'a#-~'|200",
        "title ==[c] 'a text that is the same, but for its case, #-~'|100",
        "title MATCHES 'a#[0-9]+b~'|50", "title TOKENMATCHES 'word# other~'|50",
        "price + # > ~|200", "price * 2 + size * # > a.b.c - ~|100", "ALL tags == 'x#-~'|100",
        "ANY tags == 'x#-~'|100", "a.b.c~ == '#'|100",
        "SUBQUERY(kids, $k, $k.age > #~ AND $k.name LIKE[c] 'n~').@count > 0|50",
        "artist IN LIST|5", "artist IN LIST|300", "artist IN LIST|2000", "artist IN[c] LIST|300",
        "ANY tags IN LIST|300", "NOT artist IN LIST|1000",
        "title LIKE[c:realm] 'x#-~*'|100", "title CONTAINS[c:realm] 'some text #-~'|100",
        "title ==[:realm] 'x#-~'|200", "artist IN[:realm] LIST|300",
        "rql home GEOWITHIN geocircle([10.#1, 2.~], 0.000001)|50",
        "rql home GEOWITHIN geopolygon({[0.#, 0], [30, 0], [30, 1.~], [0.#, 0]})|50",
    ]

    @Test(arguments: kinds) func `the estimate is not below the memory used`(kind: String) async {
        // The measurement runs in a process of its own, where no other test allocates memory.
        await #expect(processExitsWith: .success) { [kind = kind as String] in
            let (estimate, taken) = try RoomMeasurement.measure(kind)
            precondition(estimate >= taken, "\(kind): \(estimate) is less than \(taken)")
        }
    }

    @Test func `a removed condition frees its memory`() throws {
        let index = SubscriptionIndex(seed: 3)
        let large = (0..<500).map { "title LIKE[c] 'x\($0)'" }.joined(separator: " OR ")
        index.insert(try subscription(0, large))
        let full = index.statistics.bytes
        index.remove(serial: 0)
        #expect(index.statistics.bytes < full / 2)
        let copy = try SubscriptionIndex(image: try index.image())
        #expect(copy.statistics.bytes < full / 2)
    }

    @Test func `a condition's estimate depends on the condition alone`() throws {
        let formats = [
            "artist == 'x'", "title LIKE[c] 'x'", "price + 1 > 2", "artist IN {'a', 'b'}",
        ]
        for format in formats {
            let predicate = try RecordPredicate(format: format)
            let again = try RecordPredicate(format: predicate.canonicalText)
            let bytes = ConditionRoom.bytes(of: predicate)
            #expect(bytes == ConditionRoom.bytes(of: again))
            #expect((100...4096).contains(bytes), "\(format): \(bytes)")
            let texts = (0..<100).map { "(\(format.replacing("x", with: "x\($0)")))" }
            let many = try RecordPredicate(format: texts.joined(separator: " OR "))
            #expect(ConditionRoom.bytes(of: many) > 20 * 100)
        }
        #expect(ConditionRoom.bytes(of: nil) < 4096)
    }

    /// Rows know a limited number of fields of a record type; comparisons on others are counted.
    @Test func `comparisons on fields beyond the limit of a record type are reported`() throws {
        let index = SubscriptionIndex(seed: 4)
        let fields = (0..<Catalog.mostPaths).map { "f\($0) == 1" }.joined(separator: " OR ")
        let formats = [fields, "f1 == 2 OR f2 == 2", "g == 2 OR g == 3 OR f1 == 7"]
        var unplaced: [Int] = []
        for (serial, format) in formats.enumerated() {
            unplaced.append(index.insert(try subscription(serial, format)).unplaced)
        }
        #expect(unplaced == [0, 0, 2])
    }
}

enum RoomMeasurement {
    /// Measures the estimated bytes of conditions, and the bytes that the process and the index
    /// grow by.
    static func measure(_ kind: String) throws -> (estimate: Int, taken: Int) {
        let index = SubscriptionIndex(seed: 2)
        // Excludes what is allocated once for all conditions.
        _ = try fill(index, kind, 0..<3)
        let before = bytes(with: index)
        let isSmall = kind.hasSuffix("|1") || kind.hasSuffix("|2") || kind.hasSuffix("|5")
        let estimate = try fill(index, kind, 100..<(isSmall ? 2100 : 140))
        return (estimate, bytes(with: index) - before)
    }

    /// Files conditions, and returns the sum of their estimates.
    private static func fill(
        _ index: SubscriptionIndex, _ kind: String, _ numbers: Range<Int>
    ) throws -> Int {
        guard let owner = UserID(rawValue: "ada") else { preconditionFailure("a name") }
        var sum = 0
        for number in numbers {
            let predicate = try predicate(kind, number)
            sum += ConditionRoom.bytes(of: predicate)
            index.insert(
                IndexedSubscription(
                    serial: UInt64(number), database: .public, owner: owner,
                    recordType: RecordType(rawValue: "Art"), predicate: predicate))
        }
        return sum
    }

    private static func predicate(_ kind: String, _ number: Int) throws -> RecordPredicate {
        let parts = kind.split(separator: "|")
        let count = Int(parts[1]) ?? 1
        var text = String(parts[0]).replacing("#", with: "\(number)")
        if text.contains("LIST") {
            let texts = (0..<count).map { "'a text \(number)-\($0)'" }.joined(separator: ", ")
            return try RecordPredicate(format: text.replacing("LIST", with: "{\(texts)}"))
        }
        let isRealm = text.hasPrefix("rql ")
        if isRealm { text = String(text.dropFirst(4)) }
        let whole = (0..<count).map { "(" + text.replacing("~", with: "\($0)") + ")" }
            .joined(separator: " OR ")
        return isRealm ? try RecordPredicate(rql: whole) : try RecordPredicate(format: whole)
    }

    /// Returns the bytes that the allocator has given out, and those that the index gets from the
    /// system.
    private static func bytes(with index: SubscriptionIndex) -> Int {
        let given = mallinfo2()
        let own = index.writing { content in
            content.cores.reduce(0) { sum, place in
                sum + place.core.store.arena.bytes + place.core.store.table.bytes
                    + place.core.programs.table.bytes
            }
        }
        return Int(given.uordblks) + Int(given.hblkhd) + own
    }
}
