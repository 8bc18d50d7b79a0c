import RelayServer
import Testing

/// The query parameters of a request.
@Suite struct QueryParametersTests {
    @Test func `parameters are decoded as browsers encode them`() {
        let query = QueryParameters(target: "/a?x=1+2&y=%C3%A9%2B&&z&w==&x=3")
        #expect(query["x"] == "1 2" && query["y"] == "é+" && query["z"] == "" && query["w"] == "=")
        #expect(query["v"] == nil)
        #expect(QueryParameters(target: "/a")["x"] == nil)
        #expect(QueryParameters(target: "/a?b?c=1")["b?c"] == "1")
    }

    /// A sign and a combining mark after it are one `Character`, which does not equal the sign.
    @Test func `a sign is recognised whatever follows it`() {
        let query = QueryParameters(target: "/a?\u{301}x=1&prefix=\u{301}b&\u{FE0F}y=2")
        #expect(query["\u{301}x"] == "1")
        #expect(query["prefix"] == "\u{301}b")
        #expect(query["\u{FE0F}y"] == "2")
    }

    /// Looking for a parameter compares its name with all others.
    @Test func `a name or value with endless combining marks is replaced`() {
        let few = String(repeating: "%CC%A3", count: 64)
        let many = few + "%CC%A3"
        #expect(QueryParameters(target: "/a?x=\(few)")["x"]?.unicodeScalars.count == 64)
        let query = QueryParameters(target: "/a?\(many)=1&x=\(many)&y=2")
        #expect(query["\u{FFFD}"] == "1" && query["x"] == "\u{FFFD}" && query["y"] == "2")
        let plain = QueryParameters(target: "/a?x=\(String(repeating: "\u{323}", count: 65))")
        #expect(plain["x"] == "\u{FFFD}")
    }
}
