import HTTPTypes
import RelayModel
import Storage

/// CloudKit's calls that tell a client who it is, and the page for those who are nobody yet.
///
/// The relay has no directory of people: it knows users by their record names alone. So look-ups by
/// record name answer with that name, and look-ups by address find nobody.
struct UserRoutes: Sendable {
    private let callers: CallerLookup
    private let limits: RequestLimits

    init(_ dependencies: RelayDependencies) {
        callers = CallerLookup(dependencies)
        limits = dependencies.limits
    }

    var routes: [RelayRoute] {
        let prefix = "/database/1/{container}/{environment}/public/users"
        let anywhere = "\(RecordCalls.prefix)/users"
        return [
            RelayRoute(.client, "GET", "\(anywhere)/caller", respond: caller),
            RelayRoute(.client, "GET", "\(anywhere)/current", respond: caller),
            RelayRoute(.client, "GET", "\(anywhere)/discover", respond: discoverAll),
            RelayRoute(
                .client, "POST", "\(anywhere)/discover", effect: .reads,
                respond: discover),
            RelayRoute(
                .client, "POST", "\(prefix)/lookup/id", effect: .reads, callers: .users,
                respond: lookUp),
            RelayRoute(
                .client, "POST", "\(prefix)/lookup/email", effect: .reads, callers: .users,
                respond: lookUp),
            RelayRoute(.client, "GET", "\(prefix)/lookup/contacts", respond: discoverAll),
            RelayRoute(
                .client, "POST", "\(prefix)/lookup/contacts", effect: .reads, callers: .users,
                respond: discoverAll),
            RelayRoute(
                .client, "GET", "/sign-in/1/{container}/{environment}", callers: .anybody,
                respond: signInPage),
        ]
    }

    /// The flat form satisfies CloudKit JS and MistKit; `users` is the form of Apple's text.
    private func caller(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: request.choice("database"))
        var identity = Self.identity(try admitted.user())
        identity["users"] = [.object(identity)]
        return RelayAnswer(json: .object(identity)).keepingUserToken(of: request)
    }

    /// As the service has it (measured by MistKit's authors): who is signed in may be asked of
    /// every database, people are looked for in the public one.
    private func checkPublic(_ request: RelayRequest) async throws {
        let database: DatabaseScope =
            request.parameters["database"] == nil ? .public : try request.choice("database")
        guard database != .public else { return }
        _ = try await callers.admit(request, database: database)
        throw APIError(
            .badRequest,
            "endpoint not applicable in the database type '\(database.rawValue)db'")
    }

    private func discover(_ request: RelayRequest) async throws -> RelayAnswer {
        try await checkPublic(request)
        return try await lookUp(request)
    }

    /// Nobody's contacts are known here.
    private func discoverAll(_ request: RelayRequest) async throws -> RelayAnswer {
        try await checkPublic(request)
        let admitted = try await callers.admit(request, database: .public)
        _ = try admitted.user()
        return RelayAnswer(json: ["users": []]).keepingUserToken(of: request)
    }

    /// The members under which clients list whom they look for, and what a bare text in each is.
    private static let lookupMembers = [
        ("users", "userRecordName"), ("lookupInfos", "userRecordName"),
        ("emailAddresses", "emailAddress"), ("phoneNumbers", "phoneNumber"),
    ]

    /// One entry for each element: `{"userRecordName"}`, `{"emailAddress"}`, `{"phoneNumber"}`, or
    /// a bare record name.
    private func lookUp(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: .public)
        _ = try admitted.user()
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
            var entry: JSONObject = ["lookupInfo": object]
            let error = APIError(.notFound, "the relay knows users by their record names only")
            entry.members.append(contentsOf: error.json(uuid: request.uuid).members)
            return .object(entry)
        }
        return RelayAnswer(json: ["users": .array(entries)]).keepingUserToken(of: request)
    }

    private static func identity(_ user: UserID) -> JSONObject {
        ["userRecordName": .string(user.rawValue), "nameComponents": [:]]
    }

    /// Where `redirectURL` leads if nothing else is configured: CloudKit JS opens it in a window.
    private func signInPage(_ request: RelayRequest) async throws -> RelayAnswer {
        let key = try await callers.settings(request.containerKey()).key
        var answer = RelayAnswer(
            text: SignInPage.html(of: key, origin: request.query["origin"]),
            contentType: "text/html; charset=utf-8")
        answer.headers[.contentSecurityPolicy] = SignInPage.policy
        return answer
    }
}
