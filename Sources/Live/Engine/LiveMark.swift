/// A signal that a client has taken what was sent to it, so that more may be read for it.
package struct LiveMark: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// Creates a mark, which is to be placed among what is sent.
    package init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Signals that everything before the mark has been taken.
    package func reach() { continuation.yield() }

    /// Returns once the mark has been reached, or the task is cancelled.
    package func wait() async {
        var places = stream.makeAsyncIterator()
        _ = await places.next()
    }
}
