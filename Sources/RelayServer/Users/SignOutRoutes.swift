import RelayModel
import Storage

/// Signing out: CloudKit's clients only forget their token; here the relay revokes the session too.
struct SignOutRoutes: Sendable {
    let clients: ClientAdmission
    let registry: any DeviceRegistry
    let sessions: SessionService
    /// Called for sessions that were revoked.
    let revoked: @Sendable (Revocation) async -> Void

    var routes: [RelayRoute] {
        [
            clients.route(
                "POST", "/database/1/{container}/{environment}/public/users/signOut",
                tokens: .ended, respond: signOut)
        ]
    }

    /// Ends the session of the user token, and the device that the body names, if any.
    private func signOut(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let user = try admitted.user()
        let body = try request.optionalJSONBody()
        try body.allowOnly(["deviceID", "clientId", "clientID", "apnsToken"])
        let choice = try DeviceChoice(optionalIn: body)
        var answer: JSONObject = ["userRecordName": .string(user.rawValue), "signedOut": true]
        if choice.deviceID != nil || choice.token != nil {
            let forgotten = try await SignOutService(registry: registry).forget(
                choice, of: user, in: admitted.settings.key, at: request.receivedAt)
            answer["deviceID"] = forgotten.map { .string($0.rawValue) }
        }
        try await sessions.signOut(request, user: user, of: admitted.settings)
        if admitted.caller.proof == .apiToken,
            let session = Authenticator.userToken(of: request).flatMap(SessionStanding.sessionID)
        {
            await revoked(.session(session, admitted.settings.key))
        }
        return RelayAnswer(json: .object(answer))
    }
}
