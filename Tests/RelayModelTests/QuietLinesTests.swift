import RelayModel
import Testing

/// Repeated log lines of the same kind.
@Suite struct QuietLinesTests {
    @Test func `one line of each kind is written in a while, and the others are counted`() {
        var lines = QuietLines<String>(pause: .seconds(10))
        var written: [Int?] = []
        for second in [0, 1, 2, 10, 12] { written.append(lines.take("a", at: .seconds(second))) }
        #expect(written == [0, nil, nil, 2, nil])
        let other = lines.take("b", at: .seconds(12))
        #expect(other == 0)
        let afterClock = lines.take("a", at: .seconds(3))
        #expect(afterClock == 1)
    }
}
