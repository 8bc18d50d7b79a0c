import Testing

@testable import StorageSQL

/// How many dedupe keys a container has, as upkeep counts them.
@Suite struct RememberedKeysTests {
    private static func found(
        _ container: Int64, _ bin: Int64, _ count: Int
    ) -> RememberedKeys.Found {
        RememberedKeys.Found(container: container, bin: bin, count: count)
    }

    private static func surpluses(_ keys: RememberedKeys, beyond most: Int) -> [Int64: Int] {
        Dictionary(
            uniqueKeysWithValues: keys.surpluses(beyond: most).map { ($0.container, $0.count) })
    }

    @Test func `keys are counted by container until they end`() {
        var keys = RememberedKeys(window: 6400)
        #expect(keys.width == 100 && keys.next == .min)
        keys.add([Self.found(1, 5, 10), Self.found(1, 6, 20), Self.found(2, 6, 3)], next: 700)
        keys.add([Self.found(1, 6, 5)], next: 800)
        #expect(keys.next == 800)
        #expect(Self.surpluses(keys, beyond: 30) == [1: 5])
        #expect(Self.surpluses(keys, beyond: 0) == [1: 35, 2: 3])
        // A bin counts until its last key has ended.
        keys.end(at: 599)
        #expect(Self.surpluses(keys, beyond: 0) == [1: 35, 2: 3])
        keys.end(at: 600)
        #expect(Self.surpluses(keys, beyond: 0) == [1: 25, 2: 3])
        keys.end(at: 10_000)
        #expect(Self.surpluses(keys, beyond: 0) == [:])
    }

    @Test func `the oldest keys are subtracted first`() {
        var keys = RememberedKeys(window: 6400)
        keys.add([Self.found(1, 5, 10), Self.found(1, 6, 20), Self.found(2, 5, 7)], next: 700)
        keys.remove(15, of: 1)
        #expect(Self.surpluses(keys, beyond: 0) == [1: 15, 2: 7])
        keys.end(at: 600)
        #expect(Self.surpluses(keys, beyond: 0) == [1: 15])
        keys.remove(100, of: 1)
        keys.remove(1, of: 3)
        #expect(Self.surpluses(keys, beyond: 0) == [:])
    }
}
