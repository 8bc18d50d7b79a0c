import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import RelayModel

/// Posts pushes to an endpoint of the developer's own, one after the other, once each.
struct PushForwarding: Sendable {
    private let url: String

    /// How long an answer may take; what comes meanwhile waits in the relay, as far as it keeps it.
    private static let patience = TimeAmount.seconds(10)

    /// It says at once that nobody listens, rather than to try again while pushes wait.
    private static let client: HTTPClient = {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.redirectConfiguration = .disallow
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    init(_ text: String) throws {
        url = try Self.url(text)
    }

    /// An URL that can be posted to.
    ///
    /// - Throws: What is wrong with it, for who typed it.
    static func url(_ text: String) throws -> String {
        guard URL(string: text)?.isCallable == true else {
            throw ValidationError(
                "--forward-to: \"\(text)\" is not an URL, as http://localhost:3000/pushes"
                    + text.meantURL)
        }
        return text
    }

    /// The event that is posted, in which the container is named too.
    static func body(_ event: JSONObject, _ parts: [String: String]) -> JSONValue {
        var body = event
        for (name, value) in parts.sorted(by: { $0.key < $1.key }) { body[name] = .string(value) }
        return .object(body)
    }

    /// Posts an event.
    ///
    /// - Returns: What came of it, for people.
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
