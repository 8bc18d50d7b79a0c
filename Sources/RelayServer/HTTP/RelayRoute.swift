import RelayModel

/// One call that the relay answers.
package struct RelayRoute: Sendable {
    /// How much of a body is read before the call is refused.
    package enum BodyLimit: Sendable, Hashable {
        /// A client's request.
        case request
        /// What a change source posts.
        case webhook
    }

    /// How long a call may take.
    package enum Patience: Sendable, Hashable {
        /// It is answered as soon as possible.
        case prompt
        /// It is held until there is something to say, or the client goes; it has no body.
        case held
    }

    /// The part of the surface that a call belongs to; a listener serves some of them.
    package enum Surface: String, Sendable, Hashable, CaseIterable {
        /// CloudKit's calls and our extensions of them.
        case client
        /// Where change sources post.
        case changes
        /// Health, readiness and metrics.
        case operation
        /// The administrative calls.
        case administration
    }

    /// What answers.
    package typealias Respond = @Sendable (RelayRequest) async throws -> RelayAnswer

    /// The part of the surface.
    package let surface: Surface
    /// The method, in capitals.
    package let method: String
    /// The path, with `{name}` for its variable parts.
    package let path: String
    /// How much of a body is read.
    package let bodyLimit: BodyLimit
    /// How long it may take.
    package let patience: Patience
    /// What answers.
    package let respond: Respond

    /// Describes a call.
    init(
        _ surface: Surface, _ method: String, _ path: String, bodyLimit: BodyLimit = .request,
        patience: Patience = .prompt, respond: @escaping Respond
    ) {
        self.surface = surface
        self.method = method
        self.path = path
        self.bodyLimit = bodyLimit
        self.patience = patience
        self.respond = respond
    }
}
