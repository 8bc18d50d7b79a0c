import CCurl

/// Waits for sockets and for the wake event, and reads the clock.
///
/// The gateway's thread waits, and reads the monotonic clock, only through this type.
final class EventPoll {
    /// The descriptor that sockets are registered with.
    var descriptor: Int32 { wake.poll }
    private let wake: WakeEvent
    private let events = UnsafeMutablePointer<ccurl_event>.allocate(capacity: capacity)
    private static let capacity = 64

    /// Something that happened to a socket.
    struct Event {
        var connection: UInt64
        var socket: Int32
        var flags: Int32
    }

    init(wake: WakeEvent) {
        self.wake = wake
    }

    deinit {
        events.deallocate()
    }

    /// Waits for at most `milliseconds`, and calls `body` for each event of a socket.
    func wait(milliseconds: Int, _ body: (Event) -> Void) {
        let limit = Int32(min(milliseconds, 60_000))
        let count = ccurl_poll_wait(descriptor, events, Int32(Self.capacity), limit)
        for index in 0..<Int(count) {
            guard events[index].key != WakeEvent.key else {
                wake.clear()
                continue
            }
            body(
                Event(
                    connection: events[index].key >> 32,
                    socket: Int32(truncatingIfNeeded: events[index].key),
                    flags: events[index].flags))
        }
    }

    /// The time of the monotonic clock.
    static var now: MonotonicInstant {
        MonotonicInstant(nanoseconds: ccurl_monotonic_nanoseconds())
    }

    /// Rests without watching for events.
    static func rest(_ duration: Duration) {
        ccurl_pause(duration.wholeNanoseconds)
    }
}

/// Wakes the gateway's thread from any other thread.
///
/// It also owns the poll on which that thread waits.
final class WakeEvent: Sendable {
    /// The key of the event in the poll.
    static let key = UInt64.max

    private let descriptor: Int32
    let poll: Int32

    /// Creates the event, or returns `nil` if the process has no descriptor left.
    init?() {
        descriptor = ccurl_wake_create()
        poll = ccurl_poll_create()
        if descriptor >= 0, poll >= 0,
            ccurl_poll_watch(poll, descriptor, CCURL_READ, Self.key) == 0
        {
            return
        }
        if descriptor >= 0 { ccurl_socket_close(descriptor) }
        if poll >= 0 { ccurl_socket_close(poll) }
        return nil
    }

    deinit {
        ccurl_socket_close(descriptor)
        ccurl_socket_close(poll)
    }

    func signal() { ccurl_wake_signal(descriptor) }
    func clear() { ccurl_wake_clear(descriptor) }
}
