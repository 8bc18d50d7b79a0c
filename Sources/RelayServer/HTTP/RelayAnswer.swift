package import HTTPTypes
package import RelayModel

/// What the relay answers to one request.
package struct RelayAnswer: Sendable {
    /// The HTTP status.
    package var status: Int
    /// Header fields besides those that every answer has.
    package var headers: HTTPFields
    /// The media type of ``body``; `nil` if there is none.
    package var contentType: String?
    /// The body.
    package var body: [UInt8]
    /// The body in parts, as they come, in place of ``body``.
    package var stream: AsyncStream<[UInt8]>?
    /// Is called if the answer could not be written, because the connection is gone.
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
