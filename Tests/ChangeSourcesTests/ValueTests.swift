import RelayModel
import Testing

@testable import ChangeSources

@Suite struct JSONPointerTests {
    private let document: JSONValue = [
        "a": ["b": [10, 20]], "x/y": 1, "m~n": 2, "": 3, "n": .null, "o": ["\u{301}/\u{301}~": 4],
    ]

    @Test(arguments: [
        ("/a/b/1", "20"), ("/a/b", "[10,20]"), ("/x~1y", "1"), ("/m~0n", "2"), ("/", "3"),
        ("/n", "null"), ("/a/b/2", "-"), ("/a/b/-1", "-"), ("/a/c", "-"), ("/a/b/1/0", "-"),
        ("/o/\u{301}~1\u{301}~0", "4"), ("/o\u{301}", "-"),
    ])
    func `a pointer finds its value`(text: String, expected: String) throws {
        let pointer = try #require(JSONPointer(text))
        #expect(pointer.value(in: document)?.text ?? "-" == expected)
        #expect(pointer.description == text)
    }

    @Test(arguments: ["a", "/a~", "/a~2", "/a~0~", "/a~\u{301}"])
    func `a malformed pointer is refused`(text: String) {
        #expect(JSONPointer(text) == nil)
    }

    @Test func `the empty pointer finds the whole document`() {
        #expect(JSONPointer("")?.value(in: document) == document)
    }
}

@Suite struct NameTextTests {
    @Test(
        arguments: [
            (1_577_836_800, 0, "1577836800000"), (1_577_836_800, 123_000_000, "1577836800123"),
            (1_577_836_800, 100_000, "1577836800000.1"),
            (1_577_836_800, 200_000, "1577836800000.2"),
            (1_577_836_800, 1_000_001, "1577836800001.000001"), (-1, 999_999_000, "-1.999"),
        ] as [(Int64, Int32, String)])
    func `different moments have different names`(
        seconds: Int64, nanoseconds: Int32, name: String
    ) {
        let moment = Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        #expect(FieldValue.timestamp(moment).nameText == name)
    }

    @Test func `a number beyond 64 bits is refused as a name`() {
        #expect(FieldValue.double(1e19).nameText == nil)
        #expect(FieldValue.double(-1e300).nameText == nil)
        #expect(FieldValue.double(12.5).nameText == "12.5")
        #expect(FieldValue.integer(.max).nameText == "9223372036854775807")
    }

    @Test(
        arguments: [
            (["x,", "z"], ["x", ",z"]), (["x\\", "z"], ["x", "\\,z"]),
            (["x,\u{301}y", "\u{301}z"], ["x", "\u{301}y,\u{301}z"]),
            (["x\\\u{301}", "z"], ["x", "\\\u{301},z"]),
        ])
    func `different parts of keys make different names`(one: [String], other: [String]) {
        func name(_ parts: [String]) -> [UInt8] {
            Array(parts.map(\.escapedForJoining).joined(separator: ",").utf8)
        }
        #expect(name(one) != name(other))
    }
}

@Suite struct ColumnTypeTests {
    private func text(_ type: ColumnType, _ json: JSONValue) -> String? {
        type.convert(FieldValue(plain: json), zoneID: .default)?.notation.text
    }

    @Test func `every column type leaves nil unchanged`() {
        for type in ColumnType.allCases {
            #expect(type.convert(.null, zoneID: .default) == .null)
        }
    }

    @Test func `a value that does not fit its column type is refused`() {
        let wrong: [(ColumnType, JSONValue)] = [
            (.timestamp, 5), (.timestamp, "soon"), (.seconds, "x"), (.milliseconds, true),
            (.seconds, .integer(.max)), (.days, .integer(.min)), (.nanoseconds, .number(1.5)),
            (.location, "91,0"), (.location, "1;2"), (.location, [1, 2]),
            (.location, ["type": "Point", "coordinates": [1]]), (.reference, ["a": 1]),
            (.reference, ""), (.bytes, "\\x0"), (.bytes, "*"), (.uuid, "85558393"),
            (.objectID, "65"), (.integer, .number(1.5)), (.integer, "9223372036854775808"),
            (.number, "nan"), (.number, "0x10"), (.number, "1e999"), (.boolean, 2),
            (.boolean, "maybe"), (.text, [1]), (.set, 1), (.json, "{"),
        ]
        for (type, json) in wrong {
            #expect(text(type, json) == nil, "\(type) \(json)")
        }
    }

    @Test func `a value that fits is converted exactly`() {
        #expect(text(.nanoseconds, .integer(.min)) == #"{"$ts":[-9223372037,145224192]}"#)
        #expect(text(.milliseconds, "1700000000123") == #"{"$ts":[1700000000,123000000]}"#)
        #expect(text(.integer, .number(3.0)) == "3")
        #expect(text(.number, "-9223372036854775808") == "-9223372036854775808")
        #expect(text(.boolean, 0) == "false")
        #expect(text(.location, ["lat": 1, "lng": "2.5"]) == #"{"$geo":[1.0,2.5]}"#)
        #expect(
            text(.objectID, "65a000000000000000000001") == #"{"$oid":"65a000000000000000000001"}"#)
    }
}

@Suite struct UnscaledDecimalTests {
    @Test(
        arguments: [
            ([0x00], 0), ([0x7B], 0), ([0xFF], 0), ([0x80], 0),
            ([0x7B], 2), ([0x85], 2), ([0x7B], -2),
            ([0x80, 0, 0, 0, 0, 0, 0, 0], 0),
            ([0x00, 0x80, 0, 0, 0, 0, 0, 0, 0], 0),
            ([0x42, 0xED, 0x12, 0x3B, 0x0B, 0xD8, 0x32, 0x14], 2),
            ([0x04, 0x2E, 0xD1, 0x23, 0xB0, 0xBD, 0x82, 0x0B, 0xD4], 2),
            ([0x0C, 0x80, 0, 0, 0, 0, 0, 0x00, 0x64], 2),
            ([0x80] + [UInt8](repeating: 0, count: 15), 38),
            ([0xFF] + [UInt8](repeating: 0, count: 8), 0),
        ] as [([UInt8], Int)])
    func `a decimal keeps its scale, however many bytes it has`(
        bytes: [UInt8], scale: Int
    ) throws {
        let value = FieldValue(unscaled: bytes, scale: scale)
        let exact = try #require(Self.reference(bytes, scale))
        switch value {
        case .integer(let number)?: #expect(String(number) == exact.whole)
        case .double(let number)?: #expect(number == exact.nearest)
        default: Issue.record("\(String(describing: value))")
        }
    }

    /// Computes the expected values by schoolbook arithmetic on decimal digits.
    private static func reference(
        _ bytes: [UInt8], _ scale: Int
    ) -> (nearest: Double, whole: String)? {
        let isNegative = (bytes.first ?? 0) >= 0x80
        var digits = [0]
        func times256(plus byte: Int) {
            var carry = byte
            for index in digits.indices.reversed() {
                carry += digits[index] * 256
                digits[index] = carry % 10
                carry /= 10
            }
            while carry > 0 {
                digits.insert(carry % 10, at: 0)
                carry /= 10
            }
        }
        // The magnitude of a negative number is its complement plus one.
        for byte in bytes { times256(plus: Int(isNegative ? ~byte : byte)) }
        if isNegative {
            var index = digits.count - 1
            while index >= 0, digits[index] == 9 {
                digits[index] = 0
                index -= 1
            }
            if index >= 0 { digits[index] += 1 } else { digits.insert(1, at: 0) }
        }
        let text = (isNegative ? "-" : "") + digits.map(String.init).joined()
        guard let nearest = Double("\(text)e\(-scale)") else { return nil }
        let whole = scale > 0 ? String(text.dropLast(scale)) : text
        return (nearest, whole)
    }

    @Test func `an exact value stays exact`() {
        // 9007199254740993 times 100 with scale 2 is whole, but no double represents it.
        let bytes: [UInt8] = [0x0C, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x64]
        #expect(FieldValue(unscaled: bytes, scale: 2) == .integer(9_007_199_254_740_993))
        #expect(FieldValue(unscaled: [], scale: 0) == nil)
        #expect(FieldValue(unscaled: [1], scale: -1001) == nil)
        #expect(FieldValue(unscaled: [UInt8](repeating: 0x7F, count: 200), scale: 0) == nil)
    }
}
