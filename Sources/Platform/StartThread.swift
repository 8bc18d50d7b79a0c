import CPlatform
import Glibc

/// Runs `body` on a thread of its own, for what waits in calls of the system and would occupy one
/// of the few threads that tasks share.
///
/// The name is cut after 15 characters, as Linux has it.
///
/// - Returns: Whether the thread could be started.
package func tryToStartThread(
    named name: String, _ body: @escaping @Sendable () -> Void
) -> Bool {
    let errand = Unmanaged.passRetained(ThreadErrand(body))
    let code = belfry_thread_start(
        { place in
            guard let place else { return }
            Unmanaged<ThreadErrand>.fromOpaque(place).takeRetainedValue().body()
        }, errand.toOpaque(), name)
    if code != 0 { errand.release() }
    return code == 0
}

/// Runs `body` on a thread of its own, as ``tryToStartThread(named:_:)`` does, for whoever cannot
/// be without it: a process that may have no thread more ends.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    guard tryToStartThread(named: name, body) else {
        fatalError("the system gives this process no thread more, for \(name)")
    }
}

private final class ThreadErrand: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

/// Has the thread that calls wait, which must be one of its own.
package func pauseThread(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var rest = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var left = timespec()
    while nanosleep(&rest, &left) != 0, errno == EINTR { rest = left }
}
