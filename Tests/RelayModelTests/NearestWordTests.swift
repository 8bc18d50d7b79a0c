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

    @Test(arguments: ["", "x", "nonsense", "dxx", "view", String(repeating: "overview", count: 20)])
    func `another word is left alone`(word: String) {
        #expect(NearestWord.to(word, among: Self.words) == nil)
    }
}
