import HTTPTypes
import Logging
import RelayModel
import Storage

/// The web courier's long poll: one GET that is held until there is a notification, and answered
/// with exactly that one.
///
/// Its only credential is the secret in the URL, as for CloudKit's couriers.
struct CourierRoutes: Sendable {
    let queue: any CourierQueue
    /// Holds the waiting polls.
    let polls: CourierPolls
    let logger: Logger

    /// The age at which the stored time of the last poll is written again.
    private static let pollNoteAge: Duration = .seconds(3600)

    var routes: [RelayRoute] {
        // CloudKit JS and MistKit use GET; cloudkit_flutter uses POST without a body.
        ["GET", "POST"].map { method in
            var route = RelayRoute(
                open: .client, method, "/courier/1/{secret}", patience: .held, respond: poll)
            // HEAD would take a notification without delivering it.
            route.takesHead = false
            return route
        }
    }

    /// Answers a poll.
    ///
    /// An empty 200 tells the client to poll again. Any status other than 2xx means that the token
    /// is dead, and that the client must create a new one (MistKit; CloudKit JS polls again
    /// anyway).
    private func poll(_ request: RelayRequest) async throws -> RelayAnswer {
        let address = CourierAddress(secret: request.parameters["secret"] ?? "")
        guard let address,
            let standing = try await queue.courier(address.token),
            standing.isRegistered
        else {
            try await polls.delayRefusal()
            // 403, as CloudKit answers: only then does cloudkit_flutter create a new token.
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
                // The store fails. The notification is still in the inbox, if the container keeps
                // one.
                logger.error(
                    "could not return a web courier's notification to its queue",
                    metadata: ["reason": "\(error)"])
            }
        }
        return answer
    }
}
