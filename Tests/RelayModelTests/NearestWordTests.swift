import RelayModel
import Testing

@Suite struct NearestWordTests {
    private static let words = ["overview", "containers", "keys", "sources", "dev"]

    @Test(arguments: [
        ("overveiw", "overview"), ("Overview", "overview"), ("overvew", "overview"),
        ("source", "sources"), ("suorces", "sources"), ("kyes", "keys"),
        ("contaners", "containers"),
    ])
    func `a slip of the hand is told`(word: String, meant: String) {
        #expect(NearestWord.to(word, among: Self.words) == meant)
    }

    @Test(arguments: [
        ("titel", ["Title", "title", "TITLE"], "title"),
        ("TITEL", ["Title", "title", "TITLE"], "TITLE"),
        ("form", ["for", "from", "farm"], "from"),
        ("prioritie", ["priority", "priorities"], "priorities"),
    ])
    func `of several that are as near, one of the same letters and capitals is told`(
        word: String, words: [String], meant: String
    ) {
        #expect(NearestWord.to(word, among: words) == meant)
        #expect(NearestWord.to(word, among: words.reversed()) == meant)
    }

    @Test(arguments: ["", "x", "nonsense", "dxx", "view", String(repeating: "overview", count: 20)])
    func `another word is left alone`(word: String) {
        #expect(NearestWord.to(word, among: Self.words) == nil)
    }
}
