import HTTPTypes
import Logging
import RelayModel
import Storage

/// The web courier's long poll: one GET, held until there is a notification, answered with exactly
/// that one.
///
/// It has no credential but the secret in its URL, as CloudKit's has.
struct CourierRoutes: Sendable {
    let queue: any CourierQueue
    /// Where polls wait.
    let polls: CourierPolls
    let logger: Logger

    /// How old the note of the last poll may become before it is written anew.
    private static let pollNoteAge: Duration = .seconds(3600)

    var routes: [RelayRoute] {
        // CloudKit JS and MistKit get, cloudkit_flutter posts nothing.
        ["GET", "POST"].map {
            RelayRoute(
                open: .client, $0, "/courier/1/{secret}", patience: .held, respond: poll)
        }
    }

    /// An empty 200 means "ask again"; anything but 2xx means that the token is dead, and that a
    /// new one has to be created (MistKit; CloudKit JS asks again anyway).
    private func poll(_ request: RelayRequest) async throws -> RelayAnswer {
        // HEAD would take a notification and show it to nobody.
        guard request.method != "HEAD" else {
            throw RefusedMethod(method: request.method, allowed: "GET, OPTIONS, POST")
        }
        let address = CourierAddress(secret: request.parameters["secret"] ?? "")
        guard let address,
            let standing = try await queue.courier(address.token),
            standing.isRegistered
        else {
            try await polls.delayRefusal()
            // 403 as the service has it: cloudkit_flutter creates a new token then, and only then.
            throw APIError(
                .accessDenied,
                "there is no such courier, or no device is registered with its token: "
                    + "create a new one with tokens/create")
        }
        if standing.polledAt.advanced(by: Self.pollNoteAge) < request.receivedAt {
            try await queue.notePoll(of: address.token, at: request.receivedAt)
        }
        guard let taken = try await polls.next(of: address.token, for: standing.party) else {
            return RelayAnswer(status: 200)
        }
        return answer(taken, of: address.token)
    }

    private func answer(_ taken: TakenNotification, of courier: DeviceToken) -> RelayAnswer {
        var answer = RelayAnswer(status: 200)
        answer.contentType = "application/json; charset=utf-8"
        answer.body = taken.payload
        answer.unwritten = { [polls, logger] in
            do {
                try await polls.putBack(taken, of: courier)
            } catch {
                // The store fails; the inbox has the notification still, where one is kept.
                logger.error(
                    "could not put a courier's notification back",
                    metadata: ["reason": "\(error)"])
            }
        }
        return answer
    }
}
