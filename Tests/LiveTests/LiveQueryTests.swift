import RelayModel
import RelayTestKit
import Testing

@testable import Live

@Suite struct LiveQueryTests {
    @Test func `a desired field is sent, and so is each part of it`() {
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

    /// Otherwise the first client to declare changes of the other type would have everybody told
    /// of those.
    @Test func `a type's name cannot run into the condition`() {
        func identity(_ type: String, where condition: String) -> String {
            let subscription = Fixtures.subscription("q", on: type, where: condition)
            return LiveQuery(.changes, subscription, form: LiveForm()).identity(of: nil)
        }
        let secret = identity("Secret", where: "a == 1 AND b == 2")
        #expect(secret != identity("Secret a == 1 AND", where: "b == 2"))
        #expect(secret == identity("Secret", where: "a == 1 AND b == 2"))
        var all = Fixtures.subscription("q")
        all.scope = .database(recordType: nil)
        var one = all
        one.scope = .database(recordType: Fixtures.identifier("*"))
        let identities = [all, one].map {
            LiveQuery(.changes, $0, form: LiveForm()).identity(of: nil)
        }
        #expect(identities[0] != identities[1])
    }

    /// In Swift's order, a Hangul text may be equal to its prefix or before it.
    @Test func `a desired field is sent whatever letters its name has`() {
        var query = LiveQuery(.changes, Fixtures.subscription("q"), form: LiveForm())
        query.desiredKeys = ["e", "é", "가", "가x", "가가", "값", "값값"]
        for key in [
            "e", "e\u{301}", "가", "가x", "가가", "값", "\u{1100}\u{1161}\u{11B9}", "값값.x",
            "e.\u{301}", "e.\u{200D}x.y",
        ] {
            #expect(query.travels(key), "\(key)")
        }
        for key in ["a", "f", "가나", "각", "값값값", "è"] {
            #expect(!query.travels(key), "\(key)")
        }
    }
}
