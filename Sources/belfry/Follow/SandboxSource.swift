import RelayModel
import RelayServer

/// The change source of a running `belfry dev` for a followed database.
///
/// Rows have another format than the changes of `belfry trigger`, so they need a source of their
/// own.
enum SandboxSource {
    static let name = "followed"

    /// Creates the source, or updates the existing one.
    ///
    /// - Returns: The source to post to; `nil` for a sandbox of an earlier version.
    /// - Throws: ``CommandFailure`` if the sandbox refuses it.
    static func made(in dev: DevAddress) async throws -> PostedSource? {
        guard let container = dev.container, let url = dev.sourceURL, let token = dev.sourceToken,
            let slash = url.lastIndex(of: "/")
        else { return nil }
        let definition: JSONValue = [
            "preset": "postgres",
            "verification": ["scheme": "bearer", "secrets": [["secret": .string(token)]]],
        ]
        let client = AdministrationClient(
            transport: HTTPTransport(url: dev.url, token: dev.adminToken, trust: RelayTrust()),
            shard: nil, usualContainer: container)
        let outcome: Result<JSONValue, any Error>
        do {
            outcome = .success(
                try await client.make(
                    .setSource, ["environment": "development", "source": name], body: definition))
        } catch {
            outcome = .failure(error)
        }
        await client.transport.close()
        _ = try outcome.get()
        return PostedSource(url: "\(url[...slash])\(name)", secret: token)
    }
}
