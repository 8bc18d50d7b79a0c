import Synchronization

/// Whether something was ended on request.
final class EndMark: Sendable {
    private let mark = Mutex(false)

    /// Records the end.
    func set() {
        mark.withLock { $0 = true }
    }

    /// Whether the end was recorded.
    var isSet: Bool {
        mark.withLock { $0 }
    }
}
