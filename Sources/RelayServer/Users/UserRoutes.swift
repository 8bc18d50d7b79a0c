import HTTPTypes
import RelayModel
import Storage

/// CloudKit's calls that tell clients about users, and the page for users who are not signed in.
///
/// The relay has no directory of people: it knows users only by their record names. So look-ups by
/// record name answer with that name, and look-ups by address find no one.
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

    /// Answers with the caller's identity; the flat form is for CloudKit JS and MistKit, and
    /// `users` is the form of Apple's documentation.
    private func caller(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        var identity = Self.identity(try admitted.user())
        identity["users"] = [.object(identity)]
        return RelayAnswer(json: .object(identity))
    }

    /// Checks that the call is in the public database and that a user is signed in.
    ///
    /// This is how CloudKit behaves (measured by MistKit's authors): the caller's identity is
    /// available in every database, but people can be looked for only in the public one. In other
    /// databases the refusal comes before the check of the user.
    private func requireUser(_ admitted: AdmittedCaller) throws {
        guard admitted.database == .public else {
            throw APIError(
                .badRequest,
                "endpoint not applicable in the database type '\(admitted.database.rawValue)db'")
        }
        _ = try admitted.user()
    }

    /// Answers with an empty list, because the relay knows no contacts.
    private func discoverAll(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        try requireUser(admitted)
        return RelayAnswer(json: ["users": []])
    }

    /// The members in which clients list whom they look for, and the meaning of a plain text in
    /// each.
    private static let lookupMembers = [
        ("users", "userRecordName"), ("lookupInfos", "userRecordName"),
        ("emailAddresses", "emailAddress"), ("phoneNumbers", "phoneNumber"),
    ]

    /// Answers with one entry for each element: `{"userRecordName"}`, `{"emailAddress"}`,
    /// `{"phoneNumber"}`, or a plain record name.
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
            let error = APIError(
                .notFound, "the relay can look up users only by their record names")
            return error.entry("lookupInfo", object, uuid: request.uuid)
        }
        return RelayAnswer(json: ["users": .array(entries)])
    }

    private static func identity(_ user: UserID) -> JSONObject {
        ["userRecordName": .string(user.rawValue), "nameComponents": [:]]
    }

    /// Answers with the page to which `redirectURL` leads if no other is configured: CloudKit JS
    /// opens it in a window.
    private func signInPage(_ request: RelayRequest) async throws -> RelayAnswer {
        let key = try await registry.key(in: request)
        var answer = RelayAnswer(
            text: SignInPage.html(of: key, origin: request.query["origin"]),
            contentType: "text/html; charset=utf-8")
        answer.headers[.contentSecurityPolicy] = SignInPage.policy
        return answer
    }
}
