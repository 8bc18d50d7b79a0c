import Testing

@testable import ChangeSources

/// What a webhook of Directus costs is estimated by its keys and its payload.
@Suite struct DirectusWeightTests {
    /// The size above which a webhook is decoded apart.
    private static let long = 64 * 1024

    private static func weight(_ body: String) throws -> Int {
        try source("directus").decodedBytes(of: Array(body.utf8))
    }

    private static func body(
        keys: String, text: String = String(repeating: "x, y [z]; ", count: 100)
    ) -> String {
        #"{"trigger": {"event":"items.update","collection":"orders",\#(keys),"payload":"#
            + #"{"text":"\#(text)","tags":["a","b","c","d","e"],"sizes":[1,2,3,4]} }, "#
            + #""accountability": {"user":"u-1","roles":["a","b"]} }"#
    }

    @Test func `an ordinary webhook counts by its size`() throws {
        for keys in [#""key":7"#, #""keys":[7]"#, #""keys":["0198d2c1-7a3e-7cc5"]"#] {
            let body = Self.body(keys: keys)
            #expect(try Self.weight(body) == body.utf8.count)
        }
        let long = Self.body(keys: #""keys":[7]"#, text: String(repeating: "a,", count: 25_000))
        #expect(try Self.weight(long) == long.utf8.count)
        let body = Self.body(keys: #""keys":[1,2,3,4,5,6,7,8,9,10]"#)
        #expect(try Self.weight(body) < Self.long)
    }

    /// Escapes, quotes around the list, and numbers of all kinds hide no keys.
    @Test(arguments: [
        #""keys":[@]"#, #""key":[@]"#, #""k\u0065ys":[@]"#, #""keys":"[@]""#,
        #""keys":"\u005b@]""#, #""keys" : [ @ ]"#, #""keys":[{"a":[1,2]},@]"#,
    ])
    func `many keys make a short webhook a long one`(form: String) throws {
        let list = (0..<250).map { "\($0)" }.joined(separator: ",")
        let body = Self.body(keys: form.replacing("@", with: list))
        #expect(body.utf8.count < 4096)
        #expect(try Self.weight(body) > Self.long)
    }

    @Test func `the payload of a deletion may be its keys`() throws {
        let list = (0..<300).map { "\"\($0)\"" }.joined(separator: ",")
        let body = #"{"event":"items.delete","collection":"orders","payload":[\#(list)]}"#
        #expect(try Self.weight(body) > Self.long)
    }

    @Test(arguments: ["", "\"", "\"\\", "[[[[", "]}]}", "{\"keys\":[1,2", "-", ":::"])
    func `a body that is no JSON has a weight`(body: String) throws {
        #expect(try Self.weight(body) >= body.utf8.count)
    }

    @Test func `other senders' webhooks count by their size`() throws {
        let body = Array(#"{"keys":[1,2,3]}"#.utf8)
        #expect(try source("hasura").decodedBytes(of: body) == body.count)
        #expect(try source("hasura").decodedBytes(ofOtherForm: 2048) == 2048)
        #expect(try source("directus").decodedBytes(ofOtherForm: 2048) == Self.long)
    }
}
