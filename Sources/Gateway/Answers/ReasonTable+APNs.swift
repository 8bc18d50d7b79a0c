extension ReasonTable {
    /// The answers of APNs (Apple: Handling notification responses from APNs).
    package static let apns = ReasonTable(
        rows: badRequests + forbidden + deviceTokens + tooMuch + faults, fallback: apnsFallback)

    private static let badRequests: [ReasonRow] = [
        broken(400, "BadCollapseId", "the collapse ID is longer than 64 bytes"),
        broken(400, "BadExpirationDate", "the expiration is not a number of seconds"),
        broken(400, "BadMessageId", "the apns-id is not a UUID"),
        broken(400, "BadPriority", "the priority is not one that the push type allows"),
        broken(400, "BadTopic", "the topic is not valid"),
        broken(400, "DuplicateHeaders", "a header occurs twice"),
        broken(400, "InvalidPushType", "the push type is not valid"),
        broken(400, "MissingDeviceToken", "the path names no device token"),
        broken(400, "MissingTopic", "the topic is missing"),
        broken(400, "PayloadEmpty", "the payload is empty"),
        broken(404, "BadPath", "the path is not the path for pushes"),
        broken(405, "MethodNotAllowed", "the method is not POST"),
        broken(413, "PayloadTooLarge", "the payload is larger than 4096 bytes"),
        .init(
            400, "IdleTimeout", "the connection was idle for too long",
            .retryOnFreshConnection, .retire),
        .init(
            400, "TopicDisallowed", "the credential may not push to this topic",
            .pauseTopic, .keep, .alarm),
    ]

    private static let forbidden: [ReasonRow] = [
        credential("BadCertificate", "the client certificate is not valid"),
        credential(
            "BadCertificateEnvironment", "the client certificate is for the other environment"),
        credential(
            "UnrelatedKeyIdInToken", "the provider token's key does not belong to the connection"),
        credential(
            "BadEnvironmentKeyIdInToken", "the provider token's key is for the other environment"),
        credential(
            "BadEnvironmentKeyInToken", "the provider token's key is for the other environment"),
        .init(
            403, "ExpiredProviderToken", "the provider token is older than an hour",
            .renewProviderToken, whenRepeated: .pauseContainer, .retire),
        .init(
            403, "InvalidProviderToken",
            "the provider token cannot be verified: wrong key, key ID or team, a clock that is "
                + "ahead, or a second team on the connection",
            .retryOnFreshConnection, whenRepeated: .pauseContainer, .retire, .alarm),
        broken(403, "Forbidden", "the action is not allowed"),
        broken(403, "MissingProviderToken", "the request had neither token nor certificate"),
    ]

    private static let deviceTokens: [ReasonRow] = [
        .init(
            400, "BadDeviceToken", "the device token is malformed or of the other environment",
            .forgetDeviceToken(.unknownToGateway)),
        .init(
            400, "DeviceTokenNotForTopic", "the device token belongs to another application",
            .forgetDeviceToken(.unknownToGateway)),
        .init(
            410, "Unregistered", "the device token is no longer active for the topic",
            .forgetDeviceToken(.dead(since: nil))),
        .init(
            410, "ExpiredToken", "the device token has expired",
            .forgetDeviceToken(.dead(since: nil))),
    ]

    private static let tooMuch: [ReasonRow] = [
        .init(
            429, "TooManyProviderTokenUpdates", "provider tokens were renewed too often",
            .retry(after: nil, scope: .gateway), .retire, .alarm),
        .init(
            429, "TooManyRequests", "too many pushes for this device token",
            .retry(after: nil, scope: .device)),
    ]

    private static let faults: [ReasonRow] = [
        .init(
            500, "InternalServerError", "the gateway had an internal error",
            .retry(after: nil, scope: .delivery)),
        .init(
            503, "ServiceUnavailable", "the gateway is not available",
            .retry(after: nil, scope: .gateway)),
        .init(
            503, "Shutdown", "this server of the gateway is shutting down",
            .retryOnFreshConnection, .retire),
    ]

    /// Returns the row of a request that must not be sent again, because the relay is at fault.
    private static func broken(_ status: Int, _ reason: String, _ meaning: String) -> ReasonRow {
        ReasonRow(status, reason, meaning, .deadLetter, .keep, .alarm)
    }

    /// Returns the row of a credential that the gateway does not accept.
    private static func credential(_ reason: String, _ meaning: String) -> ReasonRow {
        ReasonRow(403, reason, meaning, .pauseContainer, .retire, .alarm)
    }

    /// Classifies answers of proxies and of future versions of the gateway by their status.
    ///
    /// A status of 408 or 429 asks for a later attempt, whoever sends it. After 421 and 425 nothing
    /// was processed, and the request may go over another connection (RFC 9110 §15.5.20, RFC 8470
    /// §5.2). What is no status of HTTP counts as a fault of the server (RFC 9110 §15).
    private static let apnsFallback: @Sendable (Int) -> ReasonRow = { status in
        switch status {
        case 421, 425:
            ReasonRow(
                status, "", "an unknown answer that asks for another connection",
                .retryOnFreshConnection, .retire, .alarm)
        case 200..<408, 409..<429, 430..<500:
            ReasonRow(
                status, "", "an unknown answer that usually means a permanent failure",
                .deadLetter, .keep, .alarm)
        default:
            ReasonRow(
                status, "", "an unknown answer that usually means a temporary failure",
                .retry(after: nil, scope: .gateway), .keep, .alarm)
        }
    }
}
