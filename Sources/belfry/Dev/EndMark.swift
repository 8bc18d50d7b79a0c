import Synchronization

/// Whether somebody has ended something.
final class EndMark: Sendable {
    private let mark = Mutex(false)

    /// It was ended.
    func set() {
        mark.withLock { $0 = true }
    }

    /// Whether it was.
    var isSet: Bool {
        mark.withLock { $0 }
    }
}
