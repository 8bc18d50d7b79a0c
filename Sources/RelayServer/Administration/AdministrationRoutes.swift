import RelayModel
import Storage

/// The route that answers one administrative call.
///
/// The operator and the `belfry` commands make these calls. The calls have a token of their own,
/// and by default their own listener on the loopback interface.
struct AdministrationRoute: Sendable {
    /// The function that answers an admitted call.
    typealias Respond = @Sendable (RelayRequest, Administrator) async throws -> RelayAnswer

    /// The credentials that a call accepts.
    enum Credentials: Sendable, Hashable {
        /// A token, or the cookie of a session that was started with one.
        case tokenOrSession
        /// A token, or a code that can be used once; for the call that starts a session.
        case tokenOrCode
    }

    /// The call.
    let call: AdministrationCall
    /// The size limit of the call's body.
    let bodyLimit: RelayRoute.BodyLimit
    /// How long the call may take.
    let patience: RelayRoute.Patience
    /// The credentials that the call accepts.
    let credentials: Credentials
    /// The function that answers the call.
    let respond: Respond

    /// Creates a route whose answer depends on the caller's token.
    init(
        _ call: AdministrationCall, bodyLimit: RelayRoute.BodyLimit = .request,
        patience: RelayRoute.Patience = .prompt, by credentials: Credentials = .tokenOrSession,
        respond: @escaping Respond
    ) {
        self.call = call
        self.bodyLimit = bodyLimit
        self.patience = patience
        self.credentials = credentials
        self.respond = respond
    }

    /// Creates a route whose answer does not depend on the caller's token.
    init(
        _ call: AdministrationCall, bodyLimit: RelayRoute.BodyLimit = .request,
        patience: RelayRoute.Patience = .prompt, respond: @escaping RelayRoute.Respond
    ) {
        self.init(
            call, bodyLimit: bodyLimit, patience: patience,
            respond: { request, _ in try await respond(request) })
    }

    /// Returns the HTTP route, which admits only tokens that may make the call.
    func admitted(by access: AdministrationAccess) -> RelayRoute {
        let need = AdministrationNeed(of: call)
        // A held or watched call spends most of its time waiting, and has limits of its own.
        let respond = patience == .prompt ? access.inTurn(self.respond) : self.respond
        return RelayRoute(
            .administration, call.method, call.path, bodyLimit: bodyLimit, patience: patience,
            effect: call.effect,
            admit: { [respond, credentials] head in
                let administrator = try await access.admit(head, by: credentials)
                return RelayRoute.Admission(
                    who: administrator.isMain ? "admin.token" : "administrativeToken"
                ) { request in
                    let current = try await access.current(administrator, of: request)
                    return try await access.answer(request, by: current, need, respond)
                }
            })
    }
}

/// The token of the administrative surface.
struct AdministrationToken: Sendable {
    private let expected: String

    /// Creates the token from the configuration's `admin.token`.
    ///
    /// - Throws: ``AuthenticationRefusal`` if it is not set; this closes the surface.
    init(_ expected: String?) throws(AuthenticationRefusal) {
        guard let expected else {
            throw .notAllowed("the administrative surface is closed: admin.token is not set")
        }
        self.expected = expected
    }

    /// Returns whether the request has this token.
    ///
    /// - Throws: ``AuthenticationRefusal`` if the request has no token.
    func matches(_ request: RelayRequest) throws(AuthenticationRefusal) -> Bool {
        Secrets.matches(try text(of: request), verifier: Secrets.verifier(of: expected))
    }

    /// Returns whether `verifier` is this token's verifier.
    func hasVerifier(_ verifier: String) -> Bool {
        ConstantTime.equal(verifier.utf8, Secrets.verifier(of: expected).utf8)
    }

    /// Returns the token of the request.
    ///
    /// - Throws: ``AuthenticationRefusal`` if the request has none.
    func text(of request: RelayRequest) throws(AuthenticationRefusal) -> String {
        guard let value = request.header("Authorization"),
            value.lowercased().hasPrefix("bearer ")
        else { throw .adminToken("Authorization: Bearer is missing") }
        return String(value.dropFirst("bearer ".count))
    }
}

/// A group of administrative calls with their routes.
protocol AdministrationTable: Sendable {
    /// The routes of the calls.
    var routes: [AdministrationRoute] { get }
}

extension RelayRequest {
    /// Returns the parameter `limit`, 1 to 1000; 100 if it is not given.
    ///
    /// - Throws: 400 if it is anything else.
    func limit() throws(APIError) -> Int {
        guard let text = query["limit"] else { return 100 }
        guard let limit = Int(text), (1...1000).contains(limit) else {
            throw APIError(.badRequest, "limit: must be 1 to 1000, found \"\(text.shortened)\"")
        }
        return limit
    }

    /// Returns a parameter that is a non-negative integer; `nil` if it is not given.
    ///
    /// - Throws: 400 if it is anything else.
    func number(_ name: String) throws(APIError) -> UInt64? {
        guard let text = query[name] else { return nil }
        guard let number = UInt64(text) else {
            throw APIError(
                .badRequest, "\(name): a whole number is expected, found \"\(text.shortened)\"")
        }
        return number
    }

    /// Returns a parameter that is an identifier; `nil` if it is not given.
    ///
    /// - Throws: 400 if it is not a valid identifier.
    func parameter<Identifier: ValidatedIdentifier>(
        _ name: String, as type: Identifier.Type = Identifier.self
    ) throws(APIError) -> Identifier? {
        guard let text = query[name] else { return nil }
        guard let identifier = Identifier(rawValue: text) else {
            throw APIError(
                .badRequest, "\(name): \"\(text.shortened)\" is not \(Identifier.rule)")
        }
        return identifier
    }

    /// Returns a variable of the path that is a non-negative integer.
    ///
    /// - Throws: 400 if it is not.
    func pathNumber(_ name: String) throws(APIError) -> UInt64 {
        let text = parameters[name] ?? ""
        guard let number = UInt64(text) else {
            throw APIError(
                .badRequest,
                "\(name) in the path: a whole number is expected, found \"\(text.shortened)\"")
        }
        return number
    }
}
