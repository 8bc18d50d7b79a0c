/// Says that a client has taken what was sent to it, so that more may be read for it.
package struct LiveMark: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// Marks a place in what is sent.
    package init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Says that everything before it has been taken.
    package func reach() { continuation.yield() }

    /// Returns once it has been reached, or the task is cancelled.
    package func wait() async {
        var places = stream.makeAsyncIterator()
        _ = await places.next()
    }
}
