import Storage
import Synchronization

/// The difference between the two sides of the deliveries' accounts, as upkeep last saw it.
///
/// Computing it takes long if many deliveries wait, so readers get the last result.
final class AccountsStanding: Sendable {
    private let latest = Mutex<Int?>(nil)

    /// The sum of the differences over all containers; anything but 0 is an error.
    ///
    /// It is `nil` before the first computation.
    var difference: Int? { latest.withLock { $0 } }

    /// Records the result of a computation.
    func note(_ accounts: [DeliveryAccount]) {
        let sum = accounts.reduce(0) { $0 + abs($1.difference) }
        latest.withLock { $0 = sum }
    }
}
