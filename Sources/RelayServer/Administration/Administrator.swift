import Logging
import RelayModel
import Storage

/// Who makes an administrative call, and what that token may do.
struct Administrator: Sendable, Hashable {
    /// What the audit log calls the token.
    let label: String
    /// Whether it is the token of the configuration, which alone may hand out others.
    let isMain: Bool
    /// Whether it may change anything.
    let mayChange: Bool
    /// The container that it is good for; `nil` for all of them.
    let container: ContainerKey?

    /// The token of the configuration.
    static let main = Administrator(
        label: "admin.token", isMain: true, mayChange: true, container: nil)

    private init(label: String, isMain: Bool, mayChange: Bool, container: ContainerKey?) {
        self.label = label
        self.isMain = isMain
        self.mayChange = mayChange
        self.container = container
    }

    init(_ token: AdminToken) {
        self.init(
            label: "\(token.label) (\(token.id))", isMain: false, mayChange: token.mayChange,
            container: token.container)
    }
}

/// What an administrative call needs: made of its path and of what it does, so that a call that is
/// added needs the most until it says that it needs less.
struct AdministrationNeed: Sendable, Hashable {
    /// Whether it only reads.
    let effect: RelayRoute.Effect
    /// Whether everything that it touches belongs to the container that its path names.
    let isOfContainer: Bool

    init(of call: AdministrationCall) {
        effect = call.effect
        isOfContainer =
            call.path == AdministrationCall.container
            || call.path.hasPrefix(AdministrationCall.container + "/")
    }

    /// Lets `administrator` make the call `request`.
    ///
    /// - Throws: ``AuthenticationRefusal/notAllowed(_:)`` that says what the token lacks.
    func check(
        _ administrator: Administrator, _ request: RelayRequest
    ) throws(AuthenticationRefusal) {
        if administrator.isMain { return }
        guard effect == .reads || administrator.mayChange else {
            throw .notAllowed("this token may read only")
        }
        guard isOfContainer else {
            guard effect == .reads else {
                throw .notAllowed("this call needs the token of the configuration, admin.token")
            }
            guard administrator.container == nil else {
                throw .notAllowed("this token is good for the calls of one container only")
            }
            return
        }
        guard let container = administrator.container else { return }
        guard (try? request.containerKey()) == container else {
            throw .notAllowed("this token is good for another container")
        }
    }
}

/// Lets administrative calls in, and notes what was done.
struct AdministrationAccess: Sendable {
    /// The token of the configuration; `nil` closes the surface.
    let expected: String?
    let registry: any AdministrationRegistry
    let turnstile: Turnstile
    let logger: Logger

    /// Says whose token a request has, as soon as its head is there.
    ///
    /// Tokens are compared when it is their turn, so that nobody guesses many.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with it, and 429.
    func admit(_ request: RelayRequest) async throws -> Administrator {
        // A request without any token is no guess.
        _ = try AdministrationToken(expected).text(of: request)
        return try await turnstile.judge(
            request.peer, wrong: AuthenticationRefusal.self
        ) {
            try await administrator(of: request)
        }
    }

    /// Answers one call if its token may make it.
    ///
    /// What may change something is noted before it is carried out, so that no crash hides it; what
    /// a known token is refused is noted too. Where the store has no room for the note, the call
    /// goes on and the log says so: it may be the one that makes room.
    func answer(
        _ request: RelayRequest, by administrator: Administrator, _ need: AdministrationNeed,
        _ respond: AdministrationRoute.Respond
    ) async throws -> RelayAnswer {
        do {
            try need.check(administrator, request)
        } catch {
            let note = await begin(request, by: administrator)
            await end(note, status: error.apiError.code.httpStatus, error.apiError.code)
            throw error
        }
        guard need.effect == .changes else { return try await respond(request, administrator) }
        let note = await begin(request, by: administrator)
        do {
            let answer = try await respond(request, administrator)
            await end(note, status: answer.status, nil)
            return answer
        } catch {
            let code = ErrorMapping(error).apiError.code
            await end(note, status: code.httpStatus, code)
            throw error
        }
    }

    /// Whose token the request has.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with it.
    private func administrator(of request: RelayRequest) async throws -> Administrator {
        let token = try AdministrationToken(expected)
        if try token.matches(request) { return .main }
        let verifier = Secrets.verifier(of: try token.text(of: request))
        guard let known = try await registry.adminToken(verifier: verifier) else {
            throw AuthenticationRefusal.adminToken("it is another one")
        }
        guard known.isLive(at: request.receivedAt) else {
            throw AuthenticationRefusal.adminToken(
                known.revokedAt == nil ? "it has ended" : "it was revoked")
        }
        return Administrator(known)
    }

    private func begin(_ request: RelayRequest, by administrator: Administrator) async -> Int64? {
        let entry = AuditEntry(
            at: request.receivedAt, caller: administrator.label, method: request.method,
            path: String(request.path.prefix(512)))
        do {
            return try await registry.beginAudit(entry)
        } catch {
            warn(error)
            return nil
        }
    }

    private func end(_ note: Int64?, status: Int, _ code: ServerErrorCode?) async {
        guard let note else { return }
        do {
            try await registry.endAudit(note, status: status, code: code?.rawValue)
        } catch {
            warn(error)
        }
    }

    private func warn(_ error: any Error) {
        logger.warning(
            "an administrative call is not in the audit log", metadata: ["reason": "\(error)"])
    }
}
