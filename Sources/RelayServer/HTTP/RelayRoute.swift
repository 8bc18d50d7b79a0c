import RelayModel
import Storage

/// One call that the relay answers.
package struct RelayRoute: Sendable {
    /// How large a body may be before the call is refused.
    package enum BodyLimit: Sendable, Hashable {
        /// The limit of a client's request.
        case request
        /// The limit of a change source's request.
        case webhook
        /// No limit for the whole body, which is never in memory: the call reads its lines as they
        /// arrive.
        case lines
    }

    /// How long a call may take.
    package enum Patience: Sendable, Hashable {
        /// It is answered as soon as possible.
        case prompt
        /// It is held until there is something to answer, or the client goes; it has no body.
        case held
        /// It is answered as soon as possible, and cancelled when the client goes.
        case watched
    }

    /// The effect of a call on the store.
    package enum Effect: String, Sendable, Hashable {
        /// It only reads.
        case reads
        /// It may change something, so a replayed copy of the request must not be applied twice.
        case changes
    }

    /// The result of judging a request by its head.
    struct Admission: Sendable {
        /// The container that the request is for, if it is for one.
        var container: ContainerSettings?
        /// The key or change source under which it is counted.
        var key: String?
        /// The kind of caller for the access log; never a name or a secret.
        var who: String?
        /// The maximum size of the body in bytes, if it is smaller than the general limit.
        var maximumBody: Int?
        /// Answers the complete request.
        ///
        /// It keeps what the head determined, and checks again what may have changed since.
        let respond: Respond
        /// Called with the reason if the request is refused before its body is complete.
        var noteRefusal: (@Sendable (any Error) -> Void)?
    }

    /// Judges the head of a request.
    typealias Admit = @Sendable (RelayRequest) async throws -> Admission

    /// How requests are admitted.
    enum Entrance: Sendable {
        /// Every client may call; no body is read.
        case open(Respond)
        /// The head of the request must identify the caller; otherwise its body is not read.
        case guarded(Admit)
    }

    /// The part of the HTTP surface that a call belongs to; each listener serves some of them.
    package enum Surface: String, Sendable, Hashable, CaseIterable {
        /// CloudKit's calls and our extensions of them.
        case client
        /// The calls to which change sources post.
        case changes
        /// Health, readiness, and the description of the surface.
        case operation
        /// Metrics, which cover all containers.
        case metrics
        /// The administrative calls.
        case administration
        /// The files of the operator's console.
        case console
    }

    /// What web pages of other origins may do with the answers.
    enum Pages: Sendable, Hashable {
        /// A page may send credentials and read; they are in the request itself, and never in a
        /// cookie.
        case named
        /// A page may read what every client may read.
        case anybody
        /// A page of another origin may do nothing.
        case none
    }

    /// Notes a request to the path with a method that it does not support; returns the error to
    /// answer.
    typealias Refuse = @Sendable (RelayRequest, RefusedMethod) async -> RefusedMethod

    /// Answers a complete request.
    package typealias Respond = @Sendable (RelayRequest) async throws -> RelayAnswer

    /// The path of a database.
    static let database = "/database/1/{container}/{environment}/{database}"

    /// The part of the surface.
    package let surface: Surface
    /// The method, in upper case.
    package let method: String
    /// The path, with `{name}` for its variable parts.
    package let path: String
    /// How large a body may be.
    package let bodyLimit: BodyLimit
    /// How long the call may take.
    package let patience: Patience
    /// The effect on the store; by default, GET reads and other methods may change something.
    package let effect: Effect
    /// How requests are admitted.
    let entrance: Entrance
    /// Notes requests with unsupported methods; `nil` if they need not be noted.
    var refuse: Refuse?
    /// Whether a call by GET is answered to HEAD too, without the body.
    ///
    /// It is not where the answer takes something from who reads it: HEAD would take it unread.
    var takesHead = true

    /// Creates a call that every client may make.
    init(
        open surface: Surface, _ method: String, _ path: String, patience: Patience = .prompt,
        respond: @escaping Respond
    ) {
        self.init(
            surface, method, path, bodyLimit: .request, patience: patience, effect: nil,
            .open(respond))
    }

    /// Creates a call of the callers that `admit` accepts.
    init(
        _ surface: Surface, _ method: String, _ path: String, bodyLimit: BodyLimit = .request,
        patience: Patience = .prompt, effect: Effect? = nil, admit: @escaping Admit
    ) {
        self.init(
            surface, method, path, bodyLimit: bodyLimit, patience: patience, effect: effect,
            .guarded(admit))
    }

    private init(
        _ surface: Surface, _ method: String, _ path: String, bodyLimit: BodyLimit,
        patience: Patience, effect: Effect?, _ entrance: Entrance
    ) {
        self.surface = surface
        self.method = method
        self.path = path
        self.bodyLimit = bodyLimit
        self.patience = patience
        self.effect = effect ?? Effect(of: method)
        self.entrance = entrance
    }
}

extension RelayRoute.Effect {
    /// Creates the default effect of a call with `method`.
    init(of method: String) {
        self = method == "GET" || method == "OPTIONS" ? .reads : .changes
    }
}

extension RelayRoute.Surface {
    /// What pages of other origins may do with the answers of this part.
    var pages: RelayRoute.Pages {
        switch self {
        case .client, .changes: .named
        case .operation: .anybody
        case .metrics, .administration, .console: .none
        }
    }
}
