import Testing

@testable import RelayModel

/// Parses `text`, and returns the value printed again, or the error.
private func outcome(_ text: String) -> String {
    do {
        return try JSONValue(parsing: text).text
    } catch {
        return "byte \(error.utf8Offset): \(error.reason)"
    }
}

@Suite struct JSONTests {
    @Test func `a copy is recognised without a look at its elements`() {
        let one: JSONValue = ["secrets": [["secret": "a"]], "n": 1]
        let copy = one
        let other: JSONValue = ["secrets": [["secret": "a"]], "n": 1]
        #expect(copy.isCopy(of: one) && one.isCopy(of: copy))
        #expect(one == other && !one.isCopy(of: other))
        #expect(!JSONValue.array([1]).isCopy(of: [1, 2]) && !JSONValue.null.isCopy(of: .null))
    }

    @Test func `values can be compared by their bytes`() {
        let composed: JSONValue = ["secrets": [["secret": "\u{E9}"]], "n": 1]
        let decomposed: JSONValue = ["secrets": [["secret": "e\u{301}"]], "n": 1]
        #expect(composed == decomposed)
        #expect(!composed.isSpelled(as: decomposed))
        #expect(composed.isSpelled(as: composed))
        #expect(!JSONValue.object(["\u{E9}": 1]).isSpelled(as: ["e\u{301}": 1]))
        #expect(!composed.isSpelled(as: ["secrets": []]))
        #expect(!JSONValue.array([1]).isSpelled(as: [1, 2]))
        #expect(JSONValue.null.isSpelled(as: .null) && !JSONValue.null.isSpelled(as: 1))
    }

    @Test(arguments: [
        ("null", "null"), (" true ", "true"), ("false", "false"), ("0", "0"), ("-0", "0"),
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9.223372036854776e+18"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("1.0", "1.0"), ("1e2", "100.0"), ("1E-2", "0.01"), ("-1.5e+3", "-1500.0"),
        ("1e-400", "0.0"), ("\"\"", "\"\""),
        (#""\u0041\n\/\"\\""#, #""A\n/\"\\""#), (#""\ud83d\ude00""#, "\"😀\""),
        (#""\u0000\u001f""#, #""\u0000\u001f""#), ("[]", "[]"), ("{}", "{}"),
        ("[1 , [2] ,{\"b\":1,\"a\":2}]", "[1,[2],{\"b\":1,\"a\":2}]"),
        ("\t\r\n{ \"a\" : null }\n", "{\"a\":null}"),
    ])
    func `a value is parsed and printed`(text: String, expected: String) throws {
        #expect(outcome(text) == expected)
        let value = try JSONValue(parsing: text)
        #expect(try JSONValue(parsing: value.utf8) == value)
    }

    @Test(arguments: [
        ("", "byte 0: the text ends where a value is expected"),
        ("1 2", "byte 2: more text after the value"),
        ("01", "byte 1: more text after the value"), ("-", "byte 1: a digit is expected"),
        ("1.", "byte 2: a digit is expected"), ("1e", "byte 2: a digit is expected"),
        (".5", "byte 0: a value is expected"), ("+1", "byte 0: a value is expected"),
        ("NaN", "byte 0: a value is expected"), ("tru", "byte 0: true is expected"),
        ("1e999", "byte 0: the number does not fit a 64-bit double"),
        ("\"a", "byte 0: the text ends inside a string"),
        ("\"\t\"", "byte 1: a control character must be escaped"),
        (#""\x""#, "byte 1: unknown escape"), (#""\ud83d""#, "byte 1: half of a surrogate pair"),
        (#""\ud83d\u0041""#, "byte 1: half of a surrogate pair"),
        (#""\ude00""#, "byte 1: half of a surrogate pair"),
        (#""\u00""#, "byte 5: four hexadecimal digits are expected"),
        ("[1,]", "byte 3: a value is expected"), ("[1 2]", "byte 3: a comma or ] is expected"),
        ("{\"a\"}", "byte 4: a colon is expected"), ("{a:1}", "byte 1: a member name is expected"),
        ("{\"a\":1,}", "byte 7: a member name is expected"),
        ("{\"a\":1,\"a\":2}", "byte 7: the name \"a\" occurs twice in one object"),
        ("{\"a\":1", "byte 6: a comma or } is expected"), ("'a'", "byte 0: a value is expected"),
    ])
    func `malformed JSON is refused with its offset`(text: String, expected: String) {
        #expect(outcome(text) == expected)
    }

    @Test func `bytes that are not UTF-8 are refused`() {
        for bytes: [UInt8] in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0xFF]] {
            #expect(throws: JSONSyntaxError.self) { try JSONValue(parsing: bytes) }
        }
    }

    @Test func `nesting is bounded at the limit`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        let limit = Limits.maximumJSONDepth
        #expect(outcome(nested(limit)) == nested(limit))
        #expect(outcome(nested(limit + 1)) == nested(limit + 1))
        #expect(outcome(nested(limit + 2)).hasSuffix("nested deeper than 128 levels"))
        #expect(outcome(nested(1_000_000)).hasSuffix("nested deeper than 128 levels"))
    }

    @Test func `repeated members are found in an object with many members`() {
        let members = (0..<1000).map { "\"m\($0)\":\($0)" }.joined(separator: ",")
        #expect(outcome("{\(members)}") == "{\(members)}")
        #expect(outcome("{\(members),\"m500\":0}").contains("\"m500\" occurs twice"))
    }

    @Test func `repeated members are found however their marks are spelled`() {
        for first in ["e\u{301}", "\u{E9}", "a"] {
            let pair = "\"\(first)\":1,\"x\":2,\"b\u{323}\u{301}\":3"
            #expect(outcome("{\(pair)}") == "{\(pair)}")
            #expect(outcome("{\(pair),\"b\u{301}\u{323}\":4}").contains("occurs twice"))
            #expect(outcome("{\(pair),\"x\":4}").contains("\"x\" occurs twice"))
        }
        #expect(outcome("{\"e\u{301}\":1,\"\u{E9}\":2}").contains("occurs twice"))
        #expect(outcome("{\"\u{E9}\":1,\"e\u{301}\":2}").contains("occurs twice"))
    }

    @Test func `the order of members counts for printing, not for equality`() throws {
        let a = try JSONValue(parsing: #"{"a":1,"b":2}"#)
        let b = try JSONValue(parsing: #"{"b":2,"a":1}"#)
        #expect(a == b)
        #expect(a.hashValue == b.hashValue)
        #expect(a.text != b.text)
        #expect(a != JSONValue.object(["a": 1]))
    }

    @Test func `members are set, replaced and removed`() {
        var object: JSONObject = ["a": 1]
        object["b"] = 2
        object["a"] = 3
        object["b"] = nil
        object["c"] = .null
        #expect(JSONValue.object(object).text == #"{"a":3,"c":null}"#)
    }

    @Test func `members are overlaid and adopted, however many there are`() {
        let former: JSONObject = ["a": 1, "b": 2, "c": 3]
        let over = former.overlaid(by: [
            (name: "b", value: .null), (name: "d", value: 4), (name: "a", value: 5),
            (name: "e", value: .null),
        ])
        #expect(JSONValue.object(over).text == #"{"a":5,"c":3,"d":4}"#)
        var object = former
        object.take(["b", "c", "x"], from: ["c": 7, "a": 9])
        #expect(JSONValue.object(object).text == #"{"a":1,"c":7}"#)
        // Comparing each member with each other one would take some thousand million comparisons.
        let many = (0..<50_000).map { (name: "m\($0)", value: JSONValue.integer(Int64($0))) }
        let whole = JSONObject().overlaid(by: many)
        #expect(whole.members.count == many.count)
        #expect(whole == JSONObject(Array(many.reversed())))
        var other = whole
        other.members[7].value = 0
        #expect(whole != other)
    }
}

@Suite struct JSONReaderTests {
    private func failure(
        _ text: String, _ read: (JSONReader) throws(JSONContractError) -> Void
    ) throws -> String {
        do {
            try read(JSONReader(JSONValue(parsing: text), path: "at"))
            return "fine"
        } catch let error as JSONContractError {
            return error.description
        }
    }

    @Test func `a byte that needs an escape is found at every place`() throws {
        let special: [UInt8] = [0, 0x1F, UInt8(ascii: "\""), UInt8(ascii: "\\")]
        // Bytes next to these by one, or in the highest bit, need none.
        let plain: [UInt8] = [0x20, 0x21, 0x23, 0x5B, 0x5D, 0x7F, 0x80, 0x9F, 0xA2, 0xDC, 0xFF]
        for length in 0..<20 {
            for byte in plain {
                let text = [UInt8](repeating: byte, count: length)
                #expect(Self.end(of: text) == length, "\(text)")
            }
            for (place, byte) in (0..<length).flatMap({ place in special.map { (place, $0) } }) {
                // The bytes after the first hit do not matter, and neither do those before it.
                for filler in plain {
                    var text = [UInt8](repeating: filler, count: length)
                    text[place] = byte
                    #expect(Self.end(of: text) == place, "\(text)")
                    text[length - 1] = byte
                    #expect(Self.end(of: text) == place, "\(text)")
                }
            }
        }
        let all = String(decoding: (0..<128).map { UInt8($0) } + Array("é€𝄞".utf8), as: UTF8.self)
        let written = JSONValue.string(all + all).text
        #expect(try JSONValue(parsing: written) == .string(all + all))
    }

    private static func end(of text: [UInt8]) -> Int? {
        unsafe text.withContiguousStorageIfAvailable { unsafe $0.endOfPlainJSONText(from: 0) }
    }

    @Test func `absent and null are the same, the wrong kind is an error`() throws {
        let reader = try JSONReader(["a": .null, "s": "x", "n": 1, "f": true])
        #expect(try reader.string("a") == nil)
        #expect(try reader.string("b") == nil)
        #expect(try reader.string("s") == "x")
        #expect(try reader.integer("n") == 1)
        #expect(try reader.bool("n") == true)
        #expect(try reader.bool("f") == true)
    }

    @Test func `errors have the path and the expected kind`() throws {
        let text = #"{"s":1,"l":[1,"a"],"o":{"p":true},"e":"purple","id":""}"#
        func expect(
            _ expected: String, _ read: (JSONReader) throws(JSONContractError) -> Void
        ) throws {
            #expect(try failure(text, read) == expected)
        }
        try expect("at.s: a string is expected, found an integer") { r throws(JSONContractError) in
            _ = try r.string("s")
        }
        try expect("at.l[0]: a string is expected, found an integer") {
            r throws(JSONContractError) in _ = try r.strings("l")
        }
        try expect("at.o.p: an integer is expected, found a boolean") {
            r throws(JSONContractError) in _ = try r.reader("o")?.integer("p")
        }
        try expect("at.id: not \(RecordName.rule)") { r throws(JSONContractError) in
            _ = try r.identifier("id", as: RecordName.self)
        }
        try expect("at.x: is required") { r throws(JSONContractError) in
            _ = try r.require("x", try r.string("x"))
        }
        try expect("at.s: unknown field; allowed are l, o, e, id") { r throws(JSONContractError) in
            try r.allowOnly(["l", "o", "e", "id"])
        }
        try expect(
            "at.e: \"purple\" is unknown; allowed are \"public\", \"private\", \"shared\""
        ) { r throws(JSONContractError) in _ = try r.choice("e", as: DatabaseScope.self) }
    }
}
