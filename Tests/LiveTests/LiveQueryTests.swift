import RelayModel
import RelayTestKit
import Testing

@testable import Live

@Suite struct LiveQueryTests {
    @Test func `a field travels that is asked for, and each part of it`() {
        var query = LiveQuery(.changes, Fixtures.subscription("q"), form: LiveForm())
        #expect(query.travels("anything"))
        query.desiredKeys = ["a", "a.b.c", "price", "title"]
        for key in ["a", "a.b", "a.b.c", "a.b.c.d", "price", "title", "title.de", "a."] {
            #expect(query.travels(key), "\(key)")
        }
        for key in ["", ".a", "ab", "b", "pric", "prices", "prices.a", "titles", "zoo", "b.a"] {
            #expect(!query.travels(key), "\(key)")
        }
        query.desiredKeys = []
        #expect(!query.travels("a"))
    }
}
