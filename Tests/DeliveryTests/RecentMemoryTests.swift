import Testing

@testable import Delivery

@Suite struct RecentMemoryTests {
    @Test func `the oldest entry is removed beyond the limit`() {
        var memory = RecentMemory<Int, String>(limit: 2)
        memory[1] = "one"
        memory[2] = "two"
        memory[1] = "one again"
        #expect(memory[1] == "one again")
        memory[3] = "three"
        #expect(memory[1] == nil && memory[2] == "two" && memory[3] == "three")
    }

    @Test func `a key that is set again counts as new`() {
        var memory = RecentMemory<Int, String>(limit: 2)
        memory[1] = "one"
        memory[1] = nil
        #expect(memory[1] == nil && memory.isEmpty)
        memory[1] = "one again"
        memory[2] = "two"
        #expect(memory[1] == "one again" && memory[2] == "two")
        memory[3] = "three"
        #expect(memory[1] == nil && memory[2] == "two" && memory[3] == "three")
    }
}
