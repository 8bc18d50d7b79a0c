import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// What the bytes of the log mean, and that no bytes do harm.
@Suite struct WireTests {
    private static let update: [UInt8] =
        [0x55, 0, 0, 0, 7, 0x4B, 0, 1, 0x74, 0, 0, 0, 1, 0x31, 0x4E, 0, 2]
        + [0x74, 0, 0, 0, 1, 0x32, 0x75]

    @Test func `an update has the key before it, and the row`() throws {
        let message = try LogMessage(Self.update)
        guard case .update(7, .key(let key)?, let row) = message else {
            Issue.record("\(message)")
            return
        }
        #expect(key == [.text([0x31])])
        #expect(row == [.text([0x32]), .unchanged])
    }

    @Test func `a message that ends anywhere is refused, and none is read beyond its end`() {
        for count in 0..<Self.update.count {
            #expect(throws: MalformedMessage.self) {
                try LogMessage(Array(Self.update.prefix(count)))
            }
        }
    }

    @Test(arguments: Seeds.all) func `no bytes end the process`(seed: UInt64) {
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
            _ = ColumnKind.list(.text).value(of: bytes[...])
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
    func `a decimal is exact, as a number where one can be`(text: String, value: FieldValue) {
        #expect(ColumnKind.numeric.value(of: Array(text.utf8)[...]) == value)
    }

    @Test func `what does not fit its type's kind stays a text`() {
        func read(_ kind: ColumnKind, _ text: String) -> FieldValue {
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

    @Test func `places in the log are read and written as PostgreSQL does`() {
        #expect(PostgresPosition("16/B374D848")?.rawValue == 0x16_B374_D848)
        #expect(PostgresPosition("16/B374D848")?.description == "16/B374D848")
        #expect(PostgresPosition("16") == nil)
        #expect(PostgresPosition("1/2/3") == nil)
    }
}
