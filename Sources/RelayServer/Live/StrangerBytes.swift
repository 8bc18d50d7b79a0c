import RelayModel
import Storage

/// The limit on what is kept for a client before it is authenticated: as little as possible.
enum StrangerBytes {
    /// The bytes that suffice for credentials and the set of a large page.
    static let most = 256 * 1024
}

extension LiveAccess {
    /// Checks whether a long text may be parsed before its sender is authenticated: the sender's
    /// address must not come too often, and must name an existing container.
    ///
    /// Turns at parsing are shared between containers, so a client that could invent containers
    /// would get most of the turns.
    ///
    /// - Throws: 429, and 404 for an unknown container.
    func admit(bytes: Int, ofStrangerAt head: RelayRequest) async throws {
        guard bytes > LongBodies.least else { return }
        try turnstile.arrive(head.peer)
        _ = try await clients.registry.settings(in: head)
    }

    /// Parses a frame as JSON; a long one waits for its turn, like the body of a request.
    func parsed(
        _ text: [UInt8], of identity: LiveIdentity?, at head: RelayRequest
    ) async throws(LiveEnd) -> JSONValue {
        if identity == nil {
            do {
                try await admit(bytes: LongBodies.weight(of: text), ofStrangerAt: head)
            } catch {
                throw LiveEnd(refusing: error)
            }
        }
        do {
            return try await clients.bodies.parsed(
                text, of: identity?.settings.key ?? head.containerKey(),
                by: identity.map { $0.isServer ? .server : .user($0.user) } ?? .strangers)
        } catch {
            throw LiveEnd(.notUnderstood, ErrorMapping(error).apiError)
        }
    }
}
