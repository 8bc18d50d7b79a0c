import RelayModel
import Testing

/// Counted things in messages to people.
@Suite struct CountedTests {
    @Test func `one thing is written in the singular`() {
        #expect(Counted.text(1, "problem") == "1 problem")
        #expect(Counted.text(0, "problem") == "0 problems")
        #expect(Counted.text(2 as Int64, "copy", "copies") == "2 copies")
        #expect(Counted.text(1 as UInt64, "entry is", "entries are") == "1 entry is")
    }
}
