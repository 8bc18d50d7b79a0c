import HTTPTypes
import RelayModel
import Storage

/// CloudKit's calls that tell a client who it is, and the page for those who are nobody yet.
///
/// The relay has no directory of people: it knows users by their record names alone. So look-ups by
/// record name answer with that name, and look-ups by address find nobody.
struct UserRoutes: Sendable {
    let clients: ClientAdmission
    let registry: any ContainerRegistry
    let limits: RequestLimits

    var routes: [RelayRoute] {
        let prefix = "/database/1/{container}/{environment}/public/users"
        let anywhere = "\(RelayRoute.database)/users"
        return [
            clients.route("GET", "\(anywhere)/caller", respond: caller),
            clients.route("GET", "\(anywhere)/current", respond: caller),
            clients.route("GET", "\(anywhere)/discover", for: .known, respond: discoverAll),
            clients.route(
                "POST", "\(anywhere)/discover", for: .known, effect: .reads, respond: lookUp),
            clients.route("POST", "\(prefix)/lookup/id", effect: .reads, respond: lookUp),
            clients.route("POST", "\(prefix)/lookup/email", effect: .reads, respond: lookUp),
            clients.route("GET", "\(prefix)/lookup/contacts", respond: discoverAll),
            clients.route(
                "POST", "\(prefix)/lookup/contacts", effect: .reads, respond: discoverAll),
            RelayRoute(
                open: .client, "GET", "/sign-in/1/{container}/{environment}",
                respond: signInPage),
        ]
    }

    /// The flat form satisfies CloudKit JS and MistKit; `users` is the form of Apple's text.
    private func caller(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        var identity = Self.identity(try admitted.user())
        identity["users"] = [.object(identity)]
        return RelayAnswer(json: .object(identity))
    }

    /// As the service has it (measured by MistKit's authors): who is signed in may be asked of
    /// every database, people are looked for in the public one, and of whoever asks elsewhere it is
    /// not even asked who they are.
    private func requireUser(_ admitted: AdmittedCaller) throws {
        guard admitted.database == .public else {
            throw APIError(
                .badRequest,
                "endpoint not applicable in the database type '\(admitted.database.rawValue)db'")
        }
        _ = try admitted.user()
    }

    /// Nobody's contacts are known here.
    private func discoverAll(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        try requireUser(admitted)
        return RelayAnswer(json: ["users": []])
    }

    /// The members under which clients list whom they look for, and what a bare text in each is.
    private static let lookupMembers = [
        ("users", "userRecordName"), ("lookupInfos", "userRecordName"),
        ("emailAddresses", "emailAddress"), ("phoneNumbers", "phoneNumber"),
    ]

    /// One entry for each element: `{"userRecordName"}`, `{"emailAddress"}`, `{"phoneNumber"}`, or
    /// a bare record name.
    private func lookUp(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        try requireUser(admitted)
        let body = try request.jsonBody()
        let (member, text) =
            Self.lookupMembers.first { body.value($0.0) != nil } ?? Self.lookupMembers[0]
        let elements = try body.require(member, try body.array(member))
        try limits.check(elements.count, of: member)
        let entries = try elements.enumerated().map { index, element -> JSONValue in
            var object = element
            if case .string = element { object = .object([text: element]) }
            let reader = try JSONReader(object, path: "\(member)[\(index)]")
            if let user: UserID = try reader.identifier("userRecordName") {
                var identity = Self.identity(user)
                identity["lookupInfo"] = object
                return .object(identity)
            }
            let error = APIError(.notFound, "the relay knows users by their record names only")
            return error.entry("lookupInfo", object, uuid: request.uuid)
        }
        return RelayAnswer(json: ["users": .array(entries)])
    }

    private static func identity(_ user: UserID) -> JSONObject {
        ["userRecordName": .string(user.rawValue), "nameComponents": [:]]
    }

    /// Where `redirectURL` leads if nothing else is configured: CloudKit JS opens it in a window.
    private func signInPage(_ request: RelayRequest) async throws -> RelayAnswer {
        let key = try await registry.key(in: request)
        var answer = RelayAnswer(
            text: SignInPage.html(of: key, origin: request.query["origin"]),
            contentType: "text/html; charset=utf-8")
        answer.headers[.contentSecurityPolicy] = SignInPage.policy
        return answer
    }
}
