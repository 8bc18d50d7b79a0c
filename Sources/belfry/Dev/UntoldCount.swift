import Synchronization

/// How many of something were not told.
final class UntoldCount: Sendable {
    private let number = Mutex(0)

    /// Counts one.
    func count() {
        number.withLock { $0 += 1 }
    }

    /// Takes the number, which begins anew.
    func take() -> Int {
        number.withLock { number in
            defer { number = 0 }
            return number
        }
    }
}
