package import HTTPTypes
package import RelayModel
import Synchronization

/// The relay's answer to one request.
package struct RelayAnswer: Sendable {
    /// The HTTP status.
    package var status: Int
    /// Header fields besides those that every answer has.
    package var headers: HTTPFields
    /// The media type of ``body``; `nil` if there is no body.
    package var contentType: String?
    /// The body.
    package var body: [UInt8]
    /// A body that is sent in parts, in place of ``body``.
    package var stream: AnswerStream?
    /// Called if the answer could not be written, because the connection is closed.
    package var unwritten: (@Sendable () async -> Void)?

    package init(status: Int) {
        self.status = status
        headers = [:]
        body = []
    }

    package init(status: Int = 200, json: JSONValue) {
        self.init(status: status)
        contentType = "application/json; charset=utf-8"
        body = json.utf8
    }

    package init(status: Int = 200, text: String, contentType: String = "text/plain; charset=utf-8")
    {
        self.init(status: status)
        self.contentType = contentType
        body = Array(text.utf8)
    }

    /// Creates the answer to a request that failed as a whole.
    package init(_ error: APIError, uuid: String) {
        self.init(status: error.httpStatus, json: .object(error.json(uuid: uuid)))
        if let seconds = error.retryAfter { headers[.retryAfter] = String(seconds) }
    }
}

/// A body in parts, each of which is requested once the previous one was written.
package final class AnswerStream: Sendable {
    /// Returns the next part; `nil` at the end.
    let next: @Sendable () async -> [UInt8]?
    private let onEnd: @Sendable () -> Void
    private let isOver = Atomic(false)

    /// Creates a stream of the parts that `next` returns; `onEnd` is called once, even if no part
    /// is requested.
    init(
        onEnd: @escaping @Sendable () -> Void, next: @escaping @Sendable () async -> [UInt8]?
    ) {
        self.next = next
        self.onEnd = onEnd
    }

    /// Notes that no further part will be requested.
    func end() {
        if !isOver.exchange(true, ordering: .relaxed) { onEnd() }
    }

    deinit { end() }
}
