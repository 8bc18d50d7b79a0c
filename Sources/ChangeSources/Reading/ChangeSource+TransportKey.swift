extension ChangeSource {
    /// Headers that name a delivery, the same on every attempt.
    static let deliveryHeaders = [
        StandardWebhooks.idHeader, StandardWebhooks.svixIDHeader, "x-appwrite-webhook-delivery-id",
        "x-hydrogen-webhook-action-id",
    ]

    /// The sender's name of this delivery.
    func transportKey(_ headers: WebhookHeaders) -> String? {
        Self.deliveryHeaders.lazy.compactMap { headers[$0] }.first { !$0.isEmpty }
    }
}
