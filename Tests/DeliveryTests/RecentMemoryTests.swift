import Testing

@testable import Delivery

@Suite struct RecentMemoryTests {
    @Test func `beyond the limit the oldest makes room`() {
        var memory = RecentMemory<Int, String>(limit: 2)
        memory[1] = "one"
        memory[2] = "two"
        memory[1] = "one again"
        #expect(memory[1] == "one again")
        memory[3] = "three"
        #expect(memory[1] == nil && memory[2] == "two" && memory[3] == "three")
    }

    @Test func `a key that comes back is as young as it is`() {
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
