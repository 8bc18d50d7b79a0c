import RelayModel
import Storage

/// What answers one administrative call.
///
/// The calls are for the operator's own hands and for `belfry`'s commands. They have their own
/// token, and by default their own listener on the loopback interface.
struct AdministrationRoute: Sendable {
    /// What answers a call that was let in.
    typealias Respond = @Sendable (RelayRequest, Administrator) async throws -> RelayAnswer

    /// What a caller may prove itself by.
    enum Credentials: Sendable, Hashable {
        /// A token, or the cookie of a session that was begun with one.
        case tokenOrSession
        /// A token, or a code that counts once: for what begins a session.
        case tokenOrCode
    }

    /// The call.
    let call: AdministrationCall
    /// How much of its body is held.
    let bodyLimit: RelayRoute.BodyLimit
    /// How long it may take.
    let patience: RelayRoute.Patience
    /// What its caller proves itself by.
    let credentials: Credentials
    /// What answers it.
    let respond: Respond

    /// Answers a call.
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

    /// Answers a call to which it is all the same whose token makes it.
    init(
        _ call: AdministrationCall, bodyLimit: RelayRoute.BodyLimit = .request,
        patience: RelayRoute.Patience = .prompt, respond: @escaping RelayRoute.Respond
    ) {
        self.init(
            call, bodyLimit: bodyLimit, patience: patience,
            respond: { request, _ in try await respond(request) })
    }

    /// The route for those tokens that may make the call.
    func admitted(by access: AdministrationAccess) -> RelayRoute {
        let need = AdministrationNeed(of: call)
        // What is held or watched waits for most of its time, and has bounds of its own.
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

    /// Expects the token of the configuration.
    ///
    /// - Throws: ``AuthenticationRefusal`` if there is none, which closes the surface.
    init(_ expected: String?) throws(AuthenticationRefusal) {
        guard let expected else {
            throw .notAllowed("the administrative surface is closed: admin.token is not set")
        }
        self.expected = expected
    }

    /// Whether the request has this token.
    ///
    /// - Throws: ``AuthenticationRefusal`` if it has none at all.
    func matches(_ request: RelayRequest) throws(AuthenticationRefusal) -> Bool {
        Secrets.matches(try text(of: request), verifier: Secrets.verifier(of: expected))
    }

    /// Whether this is the token's verifier.
    func hasVerifier(_ verifier: String) -> Bool {
        ConstantTime.equal(verifier.utf8, Secrets.verifier(of: expected).utf8)
    }

    /// The token that the request has.
    ///
    /// - Throws: ``AuthenticationRefusal`` if it has none.
    func text(of request: RelayRequest) throws(AuthenticationRefusal) -> String {
        guard let value = request.header("Authorization"),
            value.lowercased().hasPrefix("bearer ")
        else { throw .adminToken("Authorization: Bearer is missing") }
        return String(value.dropFirst("bearer ".count))
    }
}

/// A table of administrative calls.
protocol AdministrationTable: Sendable {
    /// The calls.
    var routes: [AdministrationRoute] { get }
}

extension RelayRequest {
    /// The parameter `limit`, 1 to 1000, 100 unless given.
    ///
    /// - Throws: 400 if it is something else.
    func limit() throws(APIError) -> Int {
        guard let text = query["limit"] else { return 100 }
        guard let limit = Int(text), (1...1000).contains(limit) else {
            throw APIError(.badRequest, "limit: must be 1 to 1000, found \"\(text.shortened)\"")
        }
        return limit
    }

    /// A parameter that is a number from 0; `nil` if it is not given.
    ///
    /// - Throws: 400 if it is something else.
    func number(_ name: String) throws(APIError) -> UInt64? {
        guard let text = query[name] else { return nil }
        guard let number = UInt64(text) else {
            throw APIError(
                .badRequest, "\(name): a whole number is expected, found \"\(text.shortened)\"")
        }
        return number
    }

    /// A parameter that is a name; `nil` if it is not given.
    ///
    /// - Throws: 400 if it is not one.
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

    /// A number in the path.
    ///
    /// - Throws: 400 if it is none.
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
