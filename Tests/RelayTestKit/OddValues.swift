/// Random values that often break parsers: deep nesting, odd numbers, odd texts.
package struct OddValues {
    /// The source of randomness.
    package var generator: SeededGenerator

    /// Creates a sequence that follows from `seed`.
    package init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    /// JSON texts of scalars: valid ones, and some that only look valid.
    private static let scalars = [
        "null", "true", "false", "0", "-0", "-0.0", "1", "1.0", "-1", "9223372036854775807",
        "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
        "18446744073709551616",
        "123456789012345678901234567890", "0.1", "1e308", "-1e308", "5e-324", "1e-400", "1E5",
        #""""#, #""\u0000""#, #""a\u0000b""#, #""NaN""#, #""Infinity""#, #""\u007f\u0080""#,
        #""\ud83d\ude00""#, #""e\u0301""#, #""\u00e9""#, #""\u2028\ufeff""#, #""\\\"\/""#,
        #"{"$date":1700000000.25}"#, #"{"$ts":[9223372036854775807,999999999]}"#,
        #"{"$ts":[-9223372036854775808,0]}"#, #"{"$geo":[-90,180]}"#, #"{"$bytes":"AAEC"}"#,
        #"{"$uuid":"85558393-c75d-4d2f-9c15-e80591b83894"}"#, #"{"$ref":"r","$zone":"z"}"#,
        #"{"$oid":"65a000000000000000000001"}"#, #"{"$numberDouble":"NaN"}"#, #"{"$set":[]}"#,
        #"{"$map":{"$x":1,"":2}}"#, #"{"":null}"#, #"{"a":1,"$dict":true}"#, "[]", "{}",
        #"{"value":1,"type":"INT64"}"#, #"{"recordName":"r"}"#, #"{"latitude":1,"longitude":2}"#,
    ]

    /// Openings and closings that wrap a value into one more level.
    private static let frames = [
        ("[", "]"), ("[1,", "]"), (#"{"a":"#, "}"), (#"{"é":"#, "}"), (#"{"$set":["#, "]}"),
        (#"{"$map":{"$m":"#, "}}"), (#"{"\u0000":"#, "}"), ("[[", "],0]"),
    ]

    /// Returns the JSON text of a value, which in one case of four is nested about as deep as
    /// allowed.
    package mutating func json() -> String {
        var text = Self.scalars.randomElement(using: &generator) ?? "0"
        if generator.chance(10) {
            let length = Int.random(in: 200...5000, using: &generator)
            text = "\"" + String(repeating: "\u{e9}", count: length) + "\""
        }
        let depth =
            generator.chance(25)
            ? Int.random(in: 50...140, using: &generator) : Int.random(in: 0...3, using: &generator)
        var left = ""
        var right = ""
        let same = generator.chance(50) ? Self.frames.randomElement(using: &generator) : nil
        for _ in 0..<depth {
            let frame = same ?? Self.frames.randomElement(using: &generator) ?? ("[", "]")
            left += frame.0
            right = frame.1 + right
        }
        return left + text + right
    }

    /// Returns the name of a field, seldom a plain one.
    package mutating func name() -> String {
        let names = ["f", "$f", "", "a.b", "\u{e9}", "e\u{301}", "full", "$date", "___x", "a b"]
        guard !generator.chance(5) else {
            return String(repeating: "n", count: Int.random(in: 1...4000, using: &generator))
        }
        return names.randomElement(using: &generator) ?? "f"
    }
}
