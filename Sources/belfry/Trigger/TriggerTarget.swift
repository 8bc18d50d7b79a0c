import ArgumentParser
import AsyncHTTPClient
import ChangeSources
import Foundation
import NIOCore
import NIOHTTP1
import RelayModel
import RelayServer

/// Where a change is posted: a source of a running `belfry dev`, or the one that is named.
struct TriggerTarget: ParsableArguments {
    @Option(
        help: """
            The URL to which the change source is posted (belfry sources show; default: \
            BELFRY_SOURCE_URL, or a running belfry dev).
            """)
    var url: String?
    @Option(help: "The source's secret (default: BELFRY_SOURCE_SECRET).")
    var secret: String?
    @Option(help: "The authorities of the relay's certificate in PEM form.")
    var caFile: String?
    @Flag(help: "Show the relay's answer as JSON.")
    var json = false

    /// A source that is to be posted to.
    private struct Source {
        let url: String
        let secret: String
    }

    /// Posts a change.
    ///
    /// - Returns: The relay's answer.
    /// - Throws: ``CommandFailure`` if there is none, or it refuses.
    func post(_ change: JSONValue) async throws -> JSONValue {
        let source = try source(ProcessInfo.processInfo.environment)
        var trust = RelayTrust()
        if let caFile { try trust.add("--ca-file", caFile) }
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: trust.configurations[0])
        let result: Result<JSONValue, any Error>
        do {
            result = .success(try await Self.post(change, to: source, client))
        } catch {
            result = .failure(error)
        }
        try? await client.shutdown()
        return try result.get()
    }

    private func source(_ environment: [String: String]) throws -> Source {
        let named = url ?? environment["BELFRY_SOURCE_URL"]
        let secret = secret ?? environment["BELFRY_SOURCE_SECRET"]
        if let named {
            guard let secret else {
                throw CommandFailure(
                    .configuration,
                    "no secret: give --secret, or set BELFRY_SOURCE_SECRET")
            }
            guard let parts = URL(string: named), ["http", "https"].contains(parts.scheme),
                parts.host() != nil, parts.path().contains("/changes/1/")
            else {
                throw CommandFailure(
                    .configuration,
                    "\(named) is not the URL of a change source, as belfry sources show has it: "
                        + "http(s)://HOST/changes/1/CONTAINER/ENVIRONMENT/SOURCE")
            }
            return Source(url: named, secret: secret)
        }
        guard let dev = DevAddress.find(environment), let url = dev.sourceURL,
            let token = dev.sourceToken
        else {
            throw CommandFailure(
                .configuration,
                "no belfry dev is running: start one, or name a change source with --url and "
                    + "--secret")
        }
        return Source(url: url, secret: secret ?? token)
    }

    private static func post(
        _ change: JSONValue, to source: Source, _ client: HTTPClient
    ) async throws -> JSONValue {
        var request = HTTPClientRequest(url: source.url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        let body = change.utf8
        for (name, value) in proof(source.secret, of: body) {
            request.headers.add(name: name, value: value)
        }
        request.body = .bytes(ByteBuffer(bytes: body))
        let answer: (status: Int, body: [UInt8])
        do {
            let response = try await client.execute(request, timeout: .seconds(30))
            let bytes = try await response.body.collect(upTo: 1024 * 1024)
            answer = (Int(response.status.code), Array(bytes.readableBytesView))
        } catch {
            throw CommandFailure(
                .unavailable, "no relay answers at \(source.url): \(ReachingFailure(error))")
        }
        guard let json = try? JSONValue(stored: answer.body) else {
            throw CommandFailure(
                .unavailable, "what answers at \(source.url) is no relay: its answer is not JSON")
        }
        guard answer.status >= 300 else { return json }
        throw CommandFailure(answer.status < 500 ? .refused : .broken, reason(json, answer.status))
    }

    /// What proves that the source posts: a signature of Standard Webhooks where the secret is one
    /// of its keys, and otherwise the secret itself.
    private static func proof(_ secret: String, of body: [UInt8]) -> [(String, String)] {
        let id = "trigger_\(Hexadecimal.encode(World.real.randomBytes(12)))"
        let timestamp = String(World.real.now().seconds)
        guard
            let signature = StandardWebhooks.signature(
                id: id, timestamp: timestamp, body: body, secret: secret)
        else { return [("Authorization", "Bearer \(secret)")] }
        return [
            (StandardWebhooks.idHeader, id), (StandardWebhooks.timestampHeader, timestamp),
            (StandardWebhooks.signatureHeader, signature),
        ]
    }

    /// What the relay says of the whole, and of the one change.
    private static func reason(_ answer: JSONValue, _ status: Int) -> String {
        guard case .object(let object) = answer, case .string(let whole)? = object["reason"] else {
            return "HTTP \(status)"
        }
        guard case .array(let results)? = object["results"],
            case .object(let result)? = results.first, case .string(let reason)? = result["reason"]
        else { return whole }
        guard case .string(let path)? = result["path"], !path.isEmpty else { return reason }
        return "\(path): \(reason)"
    }
}
