import RelayModel
import RelayTestKit
import Testing

@Suite struct NotationTests {
    /// Each notation that is read, and the notation in which the value is written again.
    @Test(arguments: [
        ("null", "null"), ("true", "true"), ("5", "5"), ("1.5", "1.5"), ("\"x\"", "\"x\""),
        (#"{"$date":1700000000}"#, #"{"$ts":[1700000000,0]}"#),
        (#"{"$date":-0.5}"#, #"{"$ts":[-1,500000000]}"#),
        (#"{"$refdate":0}"#, #"{"$ts":[978307200,0]}"#),
        (#"{"$ts":[1,999999999]}"#, #"{"$ts":[1,999999999]}"#),
        (#"{"$geo":[-90,180]}"#, #"{"$geo":[-90.0,180.0]}"#),
        (#"{"$ref":"r"}"#, #"{"$ref":"r"}"#),
        (#"{"$ref":"r","$zone":"z"}"#, #"{"$ref":"r","$zone":"z"}"#),
        (#"{"$ref":"r","$zone":"z","$owner":"u"}"#, #"{"$ref":"r","$zone":"z","$owner":"u"}"#),
        (#"{"$ref":"r","$zone":"_defaultZone","$owner":"_defaultOwner"}"#, #"{"$ref":"r"}"#),
        (#"{"$bytes":""}"#, #"{"$bytes":""}"#), (#"{"$bytes":"AQI"}"#, #"{"$bytes":"AQI="}"#),
        (
            #"{"$uuid":"85558393-C75D-4D2F-9C15-E80591B83894"}"#,
            #"{"$uuid":"85558393-c75d-4d2f-9c15-e80591b83894"}"#
        ),
        (#"{"$oid":"65A000000000000000000001"}"#, #"{"$oid":"65a000000000000000000001"}"#),
        (#"{"$set":[2,1,2]}"#, #"{"$set":[1,2]}"#), ("[1,[null]]", "[1,[null]]"),
        (#"{"b":1,"a":{"c":[]}}"#, #"{"a":{"c":[]},"b":1}"#), ("{}", "{}"),
        (#"{"$map":{"$date":1,"x":2}}"#, #"{"$map":{"$date":1,"x":2}}"#),
        (#"{"$map":{"x":2}}"#, #"{"x":2}"#),
    ])
    func `a value is read from its notation and written again`(
        text: String, expected: String
    ) throws {
        let value = try FieldValue(notation: JSONValue(parsing: text))
        #expect(value.notation.text == expected)
        #expect(try FieldValue(notation: value.notation) == value)
        for value in [value, .list([value, value]), .map(["b": value, "a\"": .null])] {
            var written: [UInt8] = []
            value.writeNotation(to: &written)
            #expect(String(decoding: written, as: UTF8.self) == value.notation.text)
        }
    }

    @Test(arguments: [
        #"{"$dat":1}"#, #"{"$date":"x"}"#, #"{"$date":1e300}"#, #"{"$date":1,"x":2}"#,
        #"{"$ts":[1]}"#, #"{"$ts":[1,1000000000]}"#, #"{"$ts":[1,-1]}"#, #"{"$ts":[1.5,0]}"#,
        #"{"$geo":[91,0]}"#, #"{"$geo":[0,181]}"#, #"{"$geo":[0]}"#, #"{"$ref":""}"#,
        #"{"$ref":1}"#, #"{"$ref":"r","$zone":""}"#, #"{"$ref":"r","x":1}"#, #"{"$bytes":"*"}"#,
        #"{"$uuid":"85558393"}"#, #"{"$oid":"65"}"#, #"{"$set":1}"#, #"{"$map":[]}"#,
        #"{"$map":{"a":{"$x":1}}}"#,
    ])
    func `a malformed notation is refused`(text: String) throws {
        let json = try JSONValue(parsing: text)
        #expect(throws: JSONContractError.self) { try FieldValue(notation: json) }
    }

    @Test func `an error in the notation has its path`() throws {
        let json = try JSONValue(parsing: #"{"a":[{"b":{"$x":1}}]}"#)
        guard case .object(let object) = json else { return }
        #expect {
            try FieldValue.fields(notation: object, path: "after")
        } throws: { error in
            (error as? JSONContractError)?.path == "after.a[0].b"
        }
    }
}

/// The time that writing the notation takes.
@Suite struct NotationCostTests {
    @Test func `a set is written nearly as fast as a list`() {
        let values = (0..<60_000).map { FieldValue.integer(Int64($0)) }
        func time(_ value: FieldValue) -> Duration {
            (0..<7).map { _ in Duration.processorTime { _ = value.notation.utf8 } }.min() ?? .zero
        }
        // The factor was thirty when both texts were written again at each comparison.
        #expect(time(.set(Set(values))) < time(.list(values)) * 12)
    }
}
