import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import RelayModel

/// An HTTP client of a running relay, for the calls of clients, change sources and operators.
package struct RelayClient: Sendable {
    /// The token of the operator's listener.
    package static let adminToken = "admin-token-of-the-tests"

    /// The read timeout.
    ///
    /// Tests that compute for a minute without suspending share their threads with these calls, so
    /// the 90 s of the shared client are too short.
    private static let patience = TimeAmount.seconds(300)

    private static let http = HTTPClient(
        eventLoopGroupProvider: .singleton,
        configuration: HTTPClient.Configuration(timeout: .init(read: patience)))

    /// The URL of the listener for clients and change sources.
    package var url: String
    /// The URL of the operator's listener.
    package var adminURL: String

    /// Creates a client of the relay whose listeners have these ports on the loopback interface.
    package init(port: Int, adminPort: Int) {
        url = "http://127.0.0.1:\(port)"
        adminURL = "http://127.0.0.1:\(adminPort)"
    }

    /// An answer of the relay.
    package struct Reply: Sendable {
        /// The HTTP status.
        package var status: Int
        /// The body; null if it is not JSON.
        package var json: JSONValue
        /// The body as text.
        package var text: String
        /// The header `Retry-After`.
        package var retryAfter: String?
        /// The value of the renewed user token for the next request, if the answer has one.
        package var renewedToken: String?

        /// Looks up a member of the body; a number steps into a list.
        package subscript(path: String...) -> JSONValue? {
            json.value(at: path)
        }
    }

    /// Makes a call on the clients' listener.
    package func call(
        _ method: String, _ target: String, headers: [String: String] = [:], body: String? = nil
    ) async throws -> Reply {
        try await send(method, url + target, headers, body)
    }

    /// Makes a call on the operator's listener.
    package func administer(
        _ method: String, _ path: String, _ body: JSONValue? = nil
    ) async throws -> Reply {
        try await send(
            method, "\(adminURL)/admin/1/\(path)",
            ["Authorization": "Bearer \(Self.adminToken)"], body?.text)
    }

    /// Makes a call on the operator's listener with a body that is not JSON.
    package func administer(
        _ method: String, _ path: String, text: String
    ) async throws -> Reply {
        try await send(
            method, "\(adminURL)/admin/1/\(path)",
            ["Authorization": "Bearer \(Self.adminToken)"], text)
    }

    private func send(
        _ method: String, _ url: String, _ headers: [String: String], _ body: String?
    ) async throws -> Reply {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(string: body)) }
        let response = try await Self.http.execute(request, timeout: Self.patience)
        let text = String(buffer: try await response.body.collect(upTo: 16 * 1024 * 1024))
        return Reply(
            status: Int(response.status.code), json: (try? JSONValue(parsing: text)) ?? .null,
            text: text, retryAfter: response.headers.first(name: "Retry-After"),
            renewedToken: response.headers.first(name: "X-Apple-CloudKit-Web-Auth-Token"))
    }
}

extension JSONValue {
    /// Looks up the value at a path of member names and list indices.
    package func value(at path: [String]) -> JSONValue? {
        path.reduce(self) { value, step in
            switch value {
            case .object(let object)?: object[step]
            case .array(let elements)?:
                Int(step).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
            default: nil
            }
        }
    }
}
