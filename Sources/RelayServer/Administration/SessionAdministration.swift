import RelayModel
import Storage

/// Sessions of the console: begin, show, end.
struct SessionAdministration: AdministrationTable {
    let sessions: ConsoleSessions
    let cookie: ConsoleCookie

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.signIn, by: .tokenOrCode, respond: signIn),
            AdministrationRoute(.showSession) { request, administrator in
                RelayAnswer(json: .object(administrator.json(sessions.settings)))
            },
            AdministrationRoute(.signOut, respond: signOut),
            AdministrationRoute(.createSessionCode, respond: createCode),
        ]
    }

    private func signIn(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        // If another site could sign a user in with its own token, it would see what the user does.
        if request.header("Sec-Fetch-Site") != nil || request.header("Origin") != nil {
            try ConsoleCookie.checkOrigin(of: request)
        }
        let begun = try sessions.begin(with: administrator.verifier, at: request.receivedAt)
        var administrator = administrator
        administrator.session = begun.session
        var answer = RelayAnswer(
            status: 201, json: .object(administrator.json(sessions.settings)))
        cookie.give(begun.secret, to: request, in: &answer)
        return answer
    }

    private func signOut(_ request: RelayRequest) async throws -> RelayAnswer {
        guard let secret = cookie.secret(in: request) else {
            throw APIError(
                .badRequest, "there is no session to end: the call was made with a token")
        }
        sessions.end(secret)
        var answer = RelayAnswer(json: ["signedOut": true])
        cookie.take(from: request, in: &answer)
        return answer
    }

    private func createCode(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        // Otherwise sessions could follow each other without end, and continue after the user
        // signed out.
        guard administrator.session == nil else {
            throw AuthenticationRefusal.notAllowed(
                "a sign-in code needs a call with a token, not with a session")
        }
        let made = sessions.makeCode(for: administrator.verifier, at: request.receivedAt)
        return RelayAnswer(
            status: 201,
            json: [
                "code": .string(made.code), "path": .string(ConsoleSessions.path(with: made.code)),
                "expiresAt": .string(made.endsAt.iso8601),
            ])
    }
}

extension Administrator {
    /// Returns the caller's rights, and the end of its session.
    func json(_ settings: ConsoleSettings) -> JSONObject {
        var object: JSONObject = [
            "label": .string(label),
            "access": .string(isMain ? "main" : mayChange ? "change" : "read"),
        ]
        if let container {
            object["container"] = .string(container.container.rawValue)
            object["environment"] = .string(container.environment.rawValue)
        }
        object["signedIn"] = .bool(session != nil)
        if let session {
            object["startedAt"] = .string(session.startedAt.iso8601)
            object["endsAt"] = .string(session.end(settings).iso8601)
            object["idleEndsAt"] = .string(session.idleEnd(settings).iso8601)
        }
        return object
    }
}
