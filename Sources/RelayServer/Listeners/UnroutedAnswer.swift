import HTTPTypes
import RelayModel

/// The answer to a request that no route answers, in the form of every refusal.
struct UnroutedAnswer: Sendable {
    let status: Int
    /// The header fields, in order.
    let headers: [(String, String)]
    let body: [UInt8]

    /// Creates an answer with `reason`, and with the time of a retry where one may help: not after
    /// 400 or 431, which the same request would get again.
    init(status: Int, reason: String, uuid: String) {
        self.init(
            status: status,
            APIError(
                status < 500 ? .badRequest : .tryAgainLater, reason,
                retryAfter: [400, 431].contains(status) ? nil : 1, httpStatus: status), uuid: uuid)
    }

    /// Creates an answer with `reason`, and with the time of a retry if `code` says that one may
    /// help.
    init(status: Int, code: ServerErrorCode, reason: String, uuid: String) {
        self.init(
            status: status,
            APIError(
                code, reason, retryAfter: code == .tryAgainLater ? 1 : nil, httpStatus: status),
            uuid: uuid)
    }

    private init(status: Int, _ error: APIError, uuid: String) {
        self.status = status
        body = JSONValue.object(error.json(uuid: uuid)).utf8
        headers =
            [
                ("Content-Type", "application/json; charset=utf-8"),
                ("Content-Length", String(body.count)),
            ]
            + (error.retryAfter.map { [("Retry-After", "\($0)")] } ?? [])
            + [
                ("X-Apple-Request-UUID", uuid), ("Connection", "close"),
                ("Cache-Control", "no-store"),
                ("Access-Control-Allow-Origin", "*"),
            ]
    }
}
