import Storage
import Testing

@testable import RelayServer

@Suite struct BoundShareTests {
    @Test func `a container with much use leaves room for one with little`() {
        let half = BoundShare(.retries, amount: 50, most: 100)
        #expect(!half.isScarce)
        #expect(!half.isUsedUp(by: 50))
        let more = BoundShare(.retries, amount: 51, most: 100)
        #expect(more.isUsedUp(by: 51))
        #expect(more.isUsedUp(by: 50))
        #expect(!more.isUsedUp(by: 1))
        // A second container may use half of what the first one left.
        let two = BoundShare(.retries, amount: 51 + 25, most: 100)
        #expect(two.isUsedUp(by: 25))
        #expect(!two.isUsedUp(by: 24))
    }

    @Test func `without a bound no share is used up`() {
        #expect(!BoundShare(.ranges, amount: .max, most: 0).isUsedUp(by: .max))
    }
}
