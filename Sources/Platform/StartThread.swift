import CPlatform
import Glibc

/// Runs `body` on a thread of its own.
///
/// It is for code that waits in system calls, which would otherwise occupy one of the few threads
/// that tasks share. The name is cut after 15 characters, the limit of Linux.
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

/// Runs `body` on a thread of its own, as ``tryToStartThread(named:_:)`` does, for callers that
/// cannot do without it.
///
/// The process ends if the system refuses the thread.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    guard tryToStartThread(named: name, body) else {
        fatalError("the system refuses to start another thread in this process, for \(name)")
    }
}

private final class ThreadErrand: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

/// Makes the calling thread wait; it must not be one that tasks share.
package func pauseThread(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var rest = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var left = timespec()
    while nanosleep(&rest, &left) != 0, errno == EINTR { rest = left }
}
