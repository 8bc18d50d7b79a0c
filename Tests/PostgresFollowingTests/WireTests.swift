import ChangeSources
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// The meaning of the bytes of the log, and that malformed bytes do no harm.
@Suite struct WireTests {
    private static let update: [UInt8] =
        [0x55, 0, 0, 0, 7, 0x4B, 0, 1, 0x74, 0, 0, 0, 1, 0x31, 0x4E, 0, 2]
        + [0x74, 0, 0, 0, 1, 0x32, 0x75]

    @Test func `an update contains the former key and the row`() throws {
        let message = try LogMessage(Self.update)
        guard case .update(7, .key(let key)?, let row) = message else {
            Issue.record("\(message)")
            return
        }
        #expect(key == [.text([0x31])])
        #expect(row == [.text([0x32]), .unchanged])
    }

    @Test func `a truncated message is refused, and nothing is read beyond its end`() {
        for count in 0..<Self.update.count {
            #expect(throws: MalformedMessage.self) {
                try LogMessage(Array(Self.update.prefix(count)))
            }
        }
    }

    @Test(arguments: Seeds.all) func `no bytes crash the process`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            var bytes = Self.update
            for _ in 0..<3 {
                let index = Int.random(in: bytes.indices, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            bytes[0] = "BCRIUDTMOY".utf8.randomElement(using: &generator) ?? 0x55
            _ = try? LogMessage(bytes)
            _ = try? StreamMessage(bytes)
            _ = PostgresKind.list(.text).value(of: bytes[...])
        }
    }

    @Test(
        arguments: [
            ("0", FieldValue.integer(0)), ("-7.000", .integer(-7)), ("12.50", .double(12.5)),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", .string("9223372036854775808")),
            ("0.1", .double(0.1)), ("0.1234567890123456", .double(0.1234567890123456)),
            ("0.123456789012345678901", .string("0.123456789012345678901")),
            ("12345678901234567.25", .string("12345678901234567.25")), ("NaN", .string("NaN")),
        ])
    func `a decimal is exact, and a number if possible`(text: String, value: FieldValue) {
        #expect(PostgresKind.numeric.value(of: Array(text.utf8)[...]) == value)
    }

    @Test(arguments: [(307, "25", true), (319, "123456789", false), (399, "1", false)])
    func `a decimal too close to zero for a double becomes a text`(
        zeros: Int, digits: String, isNumber: Bool
    ) {
        let text = "0." + String(repeating: "0", count: zeros) + digits
        let wanted: FieldValue = isNumber ? .double(2.5e-308) : .string(text)
        #expect(PostgresKind.numeric.value(of: Array(text.utf8)[...]) == wanted)
    }

    @Test func `versions on a timeline are higher than on the one that it left`() throws {
        func place(_ text: String) throws -> PostgresPosition {
            try #require(PostgresPosition(text))
        }
        let first = Timelines()
        let third = Timelines(
            current: 3, history: "1\t0/3000000\tno recovery target specified\n2\t0/4000000\t\n")
        #expect(first.version(of: try place("0/3000000")) == 0x300_0000)
        #expect(third.version(of: try place("0/2FFFFFF")) == 0x2FF_FFFF)
        let versions = try ["0/2FFFFFF", "0/3000000", "0/3FFFFFF", "0/4000000"].map {
            third.version(of: try place($0))
        }
        #expect(versions == versions.sorted() && Set(versions).count == 4)
        #expect(versions[1] > first.version(of: try place("FF/0")))
        let system = "7713262216786880669"
        let named = Timelines(system: system, current: 2, history: "1\t0/3000000\t")
        #expect(named.prefix(at: try place("0/4000000")) == "\(system).2")
        #expect(named.prefix(at: try place("0/1")) == system)
        // PostgreSQL is upgraded into a new cluster, created three hours later: its log continues
        // where the former one's ended, on timeline 1.
        let upgraded = Timelines(system: String(7_713_262_216_786_880_669 + (10_800 << 32)))
        #expect(
            upgraded.version(of: try place("0/5000000"))
                > named.version(of: try place("0/4FFFFFF")))
        // Or rows are copied into a cluster created a month later, whose log is short.
        let copied = Timelines(system: String(7_713_262_216_786_880_669 + (2_592_000 << 32)))
        #expect(copied.version(of: try place("0/1")) > named.version(of: try place("FFFF/0")))
        for text in ["0/1", "0/2FFFFFF", "0/3000000", "FF/12"] {
            let version = named.version(of: try place(text))
            #expect(named.place(inVersion: version)?.description == text)
        }
        #expect(named.place(inVersion: 22_678_200) == nil)
        let end = try place("0/5000000")
        #expect(third.hasAll(of: first, upTo: try place("0/3000000"), written: end))
        #expect(!third.hasAll(of: first, upTo: try place("0/3000001"), written: end))
        #expect(!third.hasAll(of: third, upTo: try place("0/5000001"), written: end))
        #expect(!first.hasAll(of: third, upTo: try place("0/1"), written: end))
        // A timeline that no server has must not crash.
        #expect(Timelines(current: .max).version(of: PostgresPosition(rawValue: .max)) == .max)
        for number in [Int64.min, -4_000_000_000, 0, .max] {
            let strange = Timelines(
                system: system, current: 2, history: "\(number)\tFFFFFFFF/FFFFFFFF\tx")
            #expect(strange.version(of: try place("0/1")) > 0)
            #expect(strange.place(inVersion: .min) == nil)
        }
    }

    /// A restored server reuses places and transaction numbers.
    @Test func `the same place at another time is another position`() throws {
        let table: [UInt8] =
            [0x52, 0, 0, 0, 7] + Array("public\0t\0d".utf8) + [0, 1, 1] + Array("id\0".utf8)
            + [0, 0, 0, 23, 0xFF, 0xFF, 0xFF, 0xFF]
        let row: [UInt8] = [0x49, 0, 0, 0, 7, 0x4E, 0, 1, 0x74, 0, 0, 0, 1, 0x31]
        guard case .relation(let relation) = try LogMessage(table) else {
            Issue.record("no table")
            return
        }
        var reader = LogReader(timelines: Timelines(system: "7301"), database: "shop")
        reader.learn(TableShape(relation, namingKey: ["id"], types: TypeCatalogue()))
        let place = try #require(PostgresPosition("0/15A0AB8"))
        var positions: [String] = []
        for moment: Int64 in [800_000_000_000_000, 800_000_000_000_001, 800_000_000_000_000] {
            _ = try reader.take(.begin(commit: place, microseconds: moment, transaction: 771))
            for case .row(let row, _) in try reader.take(LogMessage(row)) {
                positions.append(row.position)
            }
            _ = try reader.take(.commit(end: place))
        }
        #expect(positions.count == 3 && positions[0] != positions[1])
        #expect(positions[0] == positions[2])
    }

    @Test func `a value that does not fit its type stays a text`() {
        func read(_ kind: PostgresKind, _ text: String) -> FieldValue {
            kind.value(of: Array(text.utf8)[...])
        }
        #expect(read(.moment, "infinity") == .string("infinity"))
        #expect(read(.moment, "0044-03-15 BC") == .string("0044-03-15 BC"))
        #expect(read(.double, "Infinity") == .string("Infinity"))
        #expect(read(.list(.integer), "{}") == .list([]))
        #expect(read(.list(.integer), "[0:1]={7,NULL}") == .list([.integer(7), .null]))
        #expect(read(.list(.text), #"{"NULL",a\,b}"#) == .list([.string("NULL"), .string("a,b")]))
        #expect(read(.list(.text), "{a") == .string("{a"))
    }

    /// A backslash before each mark keeps them from forming a run in the input.
    @Test func `an array whose escapes hide endless combining marks stays a text`() {
        func read(_ text: String) -> FieldValue {
            PostgresKind.list(.text).value(of: Array(text.utf8)[...])
        }
        let few = String(repeating: "\u{323}", count: 64)
        let escaped = String(repeating: "\\\u{323}", count: 64)
        #expect(read("{a\(escaped)}") == .list([.string("a" + few)]))
        let many = escaped + "\\\u{323}"
        #expect(read("{a\(many)}") == .string("{a\(many)}"))
        #expect(read("{\"a\(many)\"}") == .string("{\"a\(many)\"}"))
    }

    @Test func `arrays of boxes and of ranges use their separators`() {
        func read(_ type: UInt32, _ text: String) -> FieldValue {
            TypeCatalogue().kind(of: type).value(of: Array(text.utf8)[...])
        }
        #expect(
            read(1020, "{(1,1),(0,0);NULL}") == .list([.string("(1,1),(0,0)"), .null]))
        #expect(
            read(3905, #"{"[1,5)",empty,NULL}"#)
                == .list([.string("[1,5)"), .string("empty"), .null]))
        let made = TypeCatalogue([20_000: .init(element: 20_001, separator: 0x2F)])
        #expect(
            made.kind(of: 20_000).value(of: Array("{a,b/c}".utf8)[...])
                == .list([.string("a,b"), .string("c")]))
    }

    @Test func `places in the log are parsed and printed as PostgreSQL does`() {
        #expect(PostgresPosition("16/B374D848")?.rawValue == 0x16_B374_D848)
        #expect(PostgresPosition("16/B374D848")?.description == "16/B374D848")
        #expect(PostgresPosition("16") == nil)
        #expect(PostgresPosition("1/2/3") == nil)
    }
}
