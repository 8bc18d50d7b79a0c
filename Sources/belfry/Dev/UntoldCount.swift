import Synchronization

/// The number of changes that were not printed.
final class UntoldCount: Sendable {
    private let number = Mutex(0)

    /// Counts one.
    func count() {
        number.withLock { $0 += 1 }
    }

    /// Returns the number and resets it.
    func take() -> Int {
        number.withLock { number in
            defer { number = 0 }
            return number
        }
    }
}
