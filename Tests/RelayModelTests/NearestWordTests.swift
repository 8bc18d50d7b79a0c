import RelayModel
import Testing

@Suite struct NearestWordTests {
    private static let words = ["overview", "containers", "keys", "sources", "dev"]

    @Test(arguments: [
        ("overveiw", "overview"), ("Overview", "overview"), ("overvew", "overview"),
        ("source", "sources"), ("suorces", "sources"), ("kyes", "keys"),
        ("contaners", "containers"),
    ])
    func `a typing mistake finds the intended word`(word: String, meant: String) {
        #expect(NearestWord.to(word, among: Self.words) == meant)
    }

    @Test(arguments: [
        ("titel", ["Title", "title", "TITLE"], "title"),
        ("TITEL", ["Title", "title", "TITLE"], "TITLE"),
        ("form", ["for", "from", "farm"], "from"),
        ("prioritie", ["priority", "priorities"], "priorities"),
    ])
    func `among equally near words, one with the same letters and capitals is chosen`(
        word: String, words: [String], meant: String
    ) {
        #expect(NearestWord.to(word, among: words) == meant)
        #expect(NearestWord.to(word, among: words.reversed()) == meant)
    }

    @Test func `slips in long words are found wherever they are`() {
        let word = String(repeating: "abcdefgh", count: 8)
        for place in stride(from: 0, to: 62, by: 3) {
            var letters = Array(word)
            letters.swapAt(place, place + 1)
            #expect(NearestWord.to(String(letters), among: [word]) == word, "\(place)")
            letters.remove(at: (place + 20) % 60)
            #expect(NearestWord.to(String(letters), among: [word]) == word, "\(place)")
            letters[(place + 40) % 60] = "z"
            #expect(NearestWord.to(String(letters), among: [word]) == nil, "\(place)")
        }
    }

    @Test(arguments: ["", "x", "nonsense", "dxx", "view", String(repeating: "overview", count: 20)])
    func `a very different word finds nothing`(word: String) {
        #expect(NearestWord.to(word, among: Self.words) == nil)
    }
}
