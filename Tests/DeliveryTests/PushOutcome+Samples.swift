import Gateway

extension PushOutcome {
    /// The gateway has no time: the delivery is tried again.
    static let unavailable = PushOutcome.refused(
        GatewayRefusal(
            status: 503, reason: "ServiceUnavailable",
            reaction: .retry(after: nil, scope: .gateway)))

    /// The gateway refuses the credential: its container is halted.
    static let badCredential = PushOutcome.refused(
        GatewayRefusal(
            status: 403, reason: "InvalidProviderToken", reaction: .pauseContainer))
}
