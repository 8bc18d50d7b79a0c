extension ChangeSource {
    /// The headers that identify a delivery with the same value on every attempt.
    static let deliveryHeaders = [
        StandardWebhooks.idHeader, StandardWebhooks.svixIDHeader, "x-appwrite-webhook-delivery-id",
        "x-hydrogen-webhook-action-id",
    ]

    /// Returns the sender's identifier of this delivery.
    func transportKey(_ headers: WebhookHeaders) -> String? {
        Self.deliveryHeaders.lazy.compactMap { headers[$0] }.first { !$0.isEmpty }
    }
}
