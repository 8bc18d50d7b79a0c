import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import RelayModel

/// Calls a running relay over HTTP, as clients, change sources and operators do.
package struct RelayClient: Sendable {
    /// The token of the administrative surface.
    package static let adminToken = "admin-token-of-the-tests"

    /// How long an answer may take.
    ///
    /// Tests that compute for a minute without a pause share their threads with these calls, so
    /// the shared client's 90 s without a byte are too few.
    private static let patience = TimeAmount.seconds(300)

    private static let http = HTTPClient(
        eventLoopGroupProvider: .singleton,
        configuration: HTTPClient.Configuration(timeout: .init(read: patience)))

    /// Where clients and change sources are served.
    package var url: String
    /// Where the operator is served.
    package var adminURL: String

    /// Calls the relay whose listeners have these ports on the loopback interface.
    package init(port: Int, adminPort: Int) {
        url = "http://127.0.0.1:\(port)"
        adminURL = "http://127.0.0.1:\(adminPort)"
    }

    /// What the relay answered.
    package struct Reply: Sendable {
        /// The HTTP status.
        package var status: Int
        /// The body; null if it is not JSON.
        package var json: JSONValue
        /// The body as text.
        package var text: String
        /// The header `Retry-After`.
        package var retryAfter: String?
        /// The user's token for the next request, if there is one.
        package var renewedToken: String?

        /// A member of the body; a number steps into a list.
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

    /// The same with a body that is not JSON.
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
    /// What stands at a path of names and places.
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
