import RelayModel
import Storage

/// One call that the relay answers.
package struct RelayRoute: Sendable {
    /// How much of a body is read before the call is refused.
    package enum BodyLimit: Sendable, Hashable {
        /// A client's request.
        case request
        /// What a change source posts.
        case webhook
        /// It is never held whole: what answers the call reads its lines as they come.
        case lines
    }

    /// How long a call may take.
    package enum Patience: Sendable, Hashable {
        /// It is answered as soon as possible.
        case prompt
        /// It is held until there is something to say, or the client goes; it has no body.
        case held
        /// It is answered as soon as possible, and ended when the client goes.
        case watched
    }

    /// What a call does to what the relay keeps.
    package enum Effect: String, Sendable, Hashable {
        /// It only reads.
        case reads
        /// It may change something, and so must not be carried out twice by a copied request.
        case changes
    }

    /// What is known of a request as soon as its head is there.
    struct Admission: Sendable {
        /// The container that it is for, where it is for one.
        var container: ContainerSettings?
        /// What its key, or its change source, is counted as.
        var key: String?
        /// What kind of caller it is, for the access log: never a name or a secret.
        var who: String?
        /// The longest body that is read, where that is less than the limit for all.
        var maximumBody: Int?
        /// What answers the whole request, once its body is there: it holds what the head told,
        /// and judges again what may have changed since.
        let respond: Respond
        /// Hears why a request is refused before its body is whole, if anybody does.
        var noteRefusal: (@Sendable (any Error) -> Void)?
    }

    /// Looks at the head of a request.
    typealias Admit = @Sendable (RelayRequest) async throws -> Admission

    /// How requests come in.
    enum Entrance: Sendable {
        /// Anybody may call, and no body is read.
        case open(Respond)
        /// Those may whom the head of their request makes known; nobody else's body is read.
        case guarded(Admit)
    }

    /// The part of the surface that a call belongs to; a listener serves some of them.
    package enum Surface: String, Sendable, Hashable, CaseIterable {
        /// CloudKit's calls and our extensions of them.
        case client
        /// Where change sources post.
        case changes
        /// Health, readiness, and the description of the surface.
        case operation
        /// Metrics, which tell of all containers.
        case metrics
        /// The administrative calls.
        case administration
        /// The files of the operator's console.
        case console
    }

    /// What pages of other origins may do with answers.
    enum Pages: Sendable, Hashable {
        /// A page may send credentials, and read: they are in the request, never in a cookie.
        case named
        /// A page may read what anybody may.
        case anybody
        /// No page has any business here.
        case none
    }

    /// Notes that its path was called with a method that is none of its own; returns what is told.
    typealias Refuse = @Sendable (RelayRequest, RefusedMethod) async -> RefusedMethod

    /// What answers.
    package typealias Respond = @Sendable (RelayRequest) async throws -> RelayAnswer

    /// The path of a database.
    static let database = "/database/1/{container}/{environment}/{database}"

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
    /// What it does: unless said otherwise GET reads, and everything else may change something.
    package let effect: Effect
    /// How requests come in.
    let entrance: Entrance
    /// Who is to know of other methods, if anybody is.
    var refuse: Refuse?

    /// Describes a call that anybody may make.
    init(
        open surface: Surface, _ method: String, _ path: String, patience: Patience = .prompt,
        respond: @escaping Respond
    ) {
        self.init(
            surface, method, path, bodyLimit: .request, patience: patience, effect: nil,
            .open(respond))
    }

    /// Describes a call of those whom `admit` lets in.
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
    /// What a call with `method` does unless it says otherwise.
    init(of method: String) {
        self = method == "GET" || method == "OPTIONS" ? .reads : .changes
    }
}

extension RelayRoute.Surface {
    /// What pages of other origins may do with answers of this part.
    var pages: RelayRoute.Pages {
        switch self {
        case .client, .changes: .named
        case .operation: .anybody
        case .metrics, .administration, .console: .none
        }
    }
}
