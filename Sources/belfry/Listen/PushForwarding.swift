import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import RelayModel

/// Posts pushes to a developer's own endpoint, one after the other, once each.
struct PushForwarding: Sendable {
    private let url: String

    /// The time limit of an answer.
    ///
    /// Meanwhile, further events wait in the relay, as far as it keeps them.
    private static let patience = TimeAmount.seconds(10)

    /// The HTTP client.
    ///
    /// It reports an unreachable endpoint at once, because pushes wait during retries.
    private static let client: HTTPClient = {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.redirectConfiguration = .disallow
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    init(_ text: String) throws {
        url = try Self.url(text)
    }

    /// Returns a URL that can be posted to.
    ///
    /// - Throws: `ValidationError` with what is wrong.
    static func url(_ text: String) throws -> String {
        guard URL(string: text)?.isCallable == true else {
            throw ValidationError(
                "--forward-to: \"\(text)\" is not a URL such as http://localhost:3000/pushes"
                    + text.meantURL)
        }
        return text
    }

    /// Returns the body of the post: the event with the container's name and environment.
    static func body(_ event: JSONObject, _ parts: [String: String]) -> JSONValue {
        var body = event
        for (name, value) in parts.sorted(by: { $0.key < $1.key }) { body[name] = .string(value) }
        return .object(body)
    }

    /// Posts an event.
    ///
    /// - Returns: The result in readable form.
    func post(_ event: JSONObject, _ parts: [String: String]) async -> String {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        if case .string(let id)? = event["deliveryID"] {
            request.headers.add(name: "Belfry-Delivery", value: id)
        }
        request.body = .bytes(ByteBuffer(bytes: Self.body(event, parts).utf8))
        do {
            let response = try await Self.client.execute(request, timeout: Self.patience)
            let place = response.redirection.map { ", to \($0), which is not followed" } ?? ""
            return "posted to \(url): \(response.status.code)\(place)"
        } catch {
            return "not posted to \(url): \(ReachingFailure(error))"
        }
    }
}
