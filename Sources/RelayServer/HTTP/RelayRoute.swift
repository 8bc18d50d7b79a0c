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

    /// Who may call, as far as that shows before the body is read.
    enum Callers: Sendable, Hashable {
        /// Those whom the head of their request makes known; nobody else's body is read.
        case known
        /// Those of them as whom a user acts.
        case users
        /// The same, except in the public database, where anybody may act who is known.
        case owners
        /// Anybody; no body is read.
        case anybody

        /// Whether a user is needed for `request`.
        func needUser(of request: RelayRequest) -> Bool {
            switch self {
            case .known, .anybody: false
            case .users: true
            case .owners:
                // A word that is no database is refused as that.
                ["private", "shared"].contains(request.parameters["database"])
            }
        }
    }

    /// What is known of a request before its body is read.
    struct Admission: Sendable {
        /// The container that it is for, where it is for one.
        var container: ContainerSettings?
        /// What its key, or its change source, is counted as.
        var key: String?
        /// The longest body that is read, where that is less than the limit for all.
        var maximumBody: Int?
        /// Whose token an administrative call has.
        var administrator: Administrator?
    }

    /// Looks at the head of a request.
    typealias Admit = @Sendable (RelayRequest) async throws -> Admission

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
    /// What it does: unless said otherwise GET reads, and everything else may change something.
    package let effect: Effect
    /// Who may call.
    private(set) var callers: Callers
    /// Looks at the head of a request; without it no body is read.
    var admit: Admit?
    /// What answers.
    package let respond: Respond

    /// Describes a call.
    init(
        _ surface: Surface, _ method: String, _ path: String, bodyLimit: BodyLimit = .request,
        patience: Patience = .prompt, effect: Effect? = nil, callers: Callers = .known,
        respond: @escaping Respond
    ) {
        self.effect = effect ?? (method == "GET" ? .reads : .changes)
        self.surface = surface
        self.method = method
        self.path = path
        self.bodyLimit = bodyLimit
        self.patience = patience
        switch surface {
        case .operation, .metrics: self.callers = .anybody
        case .client, .changes, .administration:
            // A courier is known by its path alone.
            self.callers = patience == .held ? .anybody : callers
        }
        self.respond = respond
    }
}

extension [RelayRoute] {
    /// The same calls, for `callers` where they say no more than that they are for the known.
    func only(_ callers: RelayRoute.Callers) -> [RelayRoute] {
        map { $0.callers == .known ? $0.only(callers) : $0 }
    }
}

extension RelayRoute {
    /// The same call, for `callers`.
    func only(_ callers: Callers) -> RelayRoute {
        var route = self
        route.callers = callers
        return route
    }

    /// The same call, for those whom `admit` lets in.
    func admitting(_ admit: @escaping Admit) -> RelayRoute {
        var route = self
        route.admit = admit
        return route
    }
}

extension RelayRoute.Surface {
    /// What pages of other origins may do with answers of this part.
    var pages: RelayRoute.Pages {
        switch self {
        case .client, .changes: .named
        case .operation: .anybody
        case .metrics, .administration: .none
        }
    }
}
