import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct ContainerMemoryTests {
    @Test func `a value read before a change is not cached`() async throws {
        let memory = ContainerMemory<Int>()
        let old = try await memory.value(of: Fixtures.container) {
            memory.forget(Fixtures.container)
            return 1
        }
        #expect(old == 1)
        let new = try await memory.value(of: Fixtures.container) { 2 }
        #expect(new == 2)
        let remembered = try await memory.value(of: Fixtures.container) { 3 }
        #expect(remembered == 2)
    }

    @Test func `a missing container is not cached`() async throws {
        let memory = ContainerMemory<Int>()
        let nothing = try await memory.value(of: Fixtures.container) { nil }
        #expect(nothing == nil)
        let found = try await memory.value(of: Fixtures.container) { 1 }
        #expect(found == 1)
    }
}
