import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import RelayModel
import RelayServer

/// The target of a change: a named source, or that of a running `belfry dev`.
struct TriggerTarget: ParsableArguments {
    @Option(
        help: """
            The URL of the change source (belfry sources show prints it; default: \
            BELFRY_SOURCE_URL, or a running belfry dev).
            """)
    var url: String?
    @Option(help: "The source's secret (default: BELFRY_SOURCE_SECRET).")
    var secret: String?
    @Option(
        help: "The certificate authorities of the relay's certificate, in PEM form.",
        completion: .file())
    var caFile: String?
    @Flag(help: "Show the relay's answer as JSON.")
    var json = false

    /// The time limit of an answer.
    private static let patience = TimeAmount.seconds(30)

    /// Posts a change.
    ///
    /// - Returns: The relay's answer.
    /// - Throws: ``CommandFailure`` if there is no answer, or the relay refuses the change.
    func post(_ change: JSONValue) async throws -> JSONValue {
        let environment = ProcessInfo.processInfo.environment
        let source = try PostedSource.found(
            url: url, secret: secret, flags: (url: "--url", secret: "--secret"), environment)
        // A user may have forgotten that the variable is set for another relay, so errors mention
        // it.
        let isSet = url == nil && environment["BELFRY_SOURCE_URL"] != nil
        let note = isSet ? "; BELFRY_SOURCE_URL names it, so belfry dev was not looked for" : ""
        var trust = RelayTrust()
        if let caFile { try trust.add("--ca-file", caFile) }
        var configuration = trust.configurations[0]
        // Without a read timeout, an answer that stalls after its head would be waited for forever.
        configuration.timeout.read = Self.patience
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let result: Result<JSONValue, any Error>
        do {
            result = .success(try await Self.post(change, to: source, client, note))
        } catch {
            result = .failure(error)
        }
        try? await client.shutdown()
        return try result.get()
    }

    private static func post(
        _ change: JSONValue, to source: PostedSource, _ client: HTTPClient, _ note: String
    ) async throws -> JSONValue {
        var request = HTTPClientRequest(url: source.url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        let body = change.utf8
        for (name, value) in source.proof(of: body) {
            request.headers.add(name: name, value: value)
        }
        request.body = .bytes(ByteBuffer(bytes: body))
        let answer: (status: Int, body: [UInt8])
        do {
            let response = try await client.execute(request, timeout: patience)
            if let place = response.redirection {
                throw CommandFailure(
                    .unavailable,
                    "\(source.url) redirects to \(place): give the URL of the source itself")
            }
            let bytes = try await response.body.collect(upTo: 1024 * 1024)
            answer = (Int(response.status.code), Array(bytes.readableBytesView))
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(
                .unavailable,
                "no relay answers at \(source.url): \(ReachingFailure(error))\(note)")
        }
        guard let json = try? JSONValue(stored: answer.body) else {
            throw CommandFailure(
                .unavailable, "\(source.url) is not a relay: its answer is not JSON")
        }
        guard answer.status >= 300 else { return json }
        let reason = Self.reason(json, answer.status)
        throw CommandFailure(
            answer.status < 500 ? .refused : .broken,
            [401, 404].contains(answer.status) ? reason + note : reason)
    }

    /// Returns the relay's reason: that for the one change if there is one, or else that for the
    /// request.
    static func reason(_ answer: JSONValue, _ status: Int) -> String {
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
