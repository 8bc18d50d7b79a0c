import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Fanout

/// The users who are notified of a change that names its readers.
@Suite struct ReaderListTests {
    @Test(arguments: [8, 40])
    func `many subscriptions are checked for readers like each alone`(count: UInt64) throws {
        var state = ContainerState(
            container: Fixtures.container, indexSeed: 1, badges: BadgeCounts())
        var change = Fixtures.change(.update)
        change.readers = ["user1", "user3", "user5", "us\u{E9}r", "", "\u{1}"]
        change.readersBefore = ["user1", "user4"]
        var expected: [UInt64] = []
        for serial in 1...count {
            let owner = serial == count ? "use\u{301}r" : "user\(serial % 8)"
            var subscription = Fixtures.subscription("s\(serial)", of: owner)
            if serial % 3 == 0 { subscription.changedKeys = ["price"] }
            try state.insert(
                SubscriptionVersion(
                    serial: serial, subscription: subscription, activation: LogPosition(serial)))
            if change.mayTell(subscription) { expected.append(serial) }
        }
        var serials = Array(1...count)
        state.keepReaders(of: change, among: &serials)
        #expect(serials == expected)
        #expect(serials.contains(1) && serials.contains(5) && !serials.contains(3))
        change.readers = ["world"]
        change.readersBefore = nil
        var all = Array(1...count)
        state.keepReaders(of: change, among: &all)
        #expect(all == Array(1...count))
    }
}
