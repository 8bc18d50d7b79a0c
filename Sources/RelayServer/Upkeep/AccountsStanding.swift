import Storage
import Synchronization

/// By how much the accounts of deliveries do not balance, as upkeep saw it last.
///
/// To add them up takes long where much waits, so that whoever asks for it does not.
final class AccountsStanding: Sendable {
    private let latest = Mutex<Int?>(nil)

    /// The sum over all containers; 0, or something is wrong.
    ///
    /// `nil` before the first look.
    var difference: Int? { latest.withLock { $0 } }

    /// Takes what a look found.
    func note(_ accounts: [DeliveryAccount]) {
        let sum = accounts.reduce(0) { $0 + abs($1.difference) }
        latest.withLock { $0 = sum }
    }
}
