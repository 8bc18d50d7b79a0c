import RelayModel
import Storage

/// What is kept of a client of whom it is not known who it is: as little as possible.
enum StrangerBytes {
    /// Bytes of a stranger: room for credentials and the set of a large page.
    static let most = 256 * 1024
}

extension LiveAccess {
    /// Lets what a stranger says be parsed, before it is known who that is, if it is long: who says
    /// so much must not have come too often, and name a container that there is.
    ///
    /// Turns at parsing are shared out by containers: whoever could invent some would have most of
    /// them.
    ///
    /// - Throws: 429, and 404 for an unknown container.
    func admit(bytes: Int, ofStrangerAt head: RelayRequest) async throws {
        guard bytes > LongBodies.least else { return }
        try turnstile.arrive(head.peer)
        _ = try await clients.registry.settings(in: head)
    }

    /// A frame as JSON; a long one waits for its turn, as the body of a request does.
    func parsed(
        _ text: [UInt8], of identity: LiveIdentity?, at head: RelayRequest
    ) async throws(LiveEnd) -> JSONValue {
        if identity == nil {
            do {
                try await admit(bytes: text.count, ofStrangerAt: head)
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
