import RelayModel
import Testing

/// Lists of readers may be long, and their names are compared by bytes.
@Suite struct ReaderNamesTests {
    @Test func `common readers of two lists are found by their bytes`() {
        // Comparing each name with each other one would take some thousand million comparisons.
        let many = (0..<50_000).map { "a\($0)" }
        let others = (49_998..<100_000).map { "a\($0)" }
        #expect(RecordChange.common(many, others) == ["a49998", "a49999"])
        let spelled = RecordChange.common(["\u{E9}", "b"], ["e\u{301}", "b"])
        #expect(spelled.map { Array($0.utf8) } == [[0x62]])
        #expect(RecordChange.common(["world"], ["b"]) == ["b"])
        #expect(RecordChange.common(["b"], ["c", "world"]) == ["b"])
    }

    @Test func `a look-up in a list agrees with a search through it`() throws {
        let lists: [[String]?] = [nil, [], ["ann"], ["ann", "world"], ["a\u{E9}", "", "\u{1}"]]
        for list in lists {
            let names = ReaderNames(list)
            for name in ["ann", "bob", "a\u{E9}", "ae\u{301}", "world"] {
                let user = try #require(UserID(rawValue: name))
                let isAmong = list.map { RecordChange.names(user, in: $0) } ?? true
                #expect(names.contains(user) == isAmong, "\(name) in \(list ?? [])")
            }
        }
    }
}
