import RelayModel

extension PushNotification {
    /// Finds what the gateway would refuse, before the push is sent.
    ///
    /// Returns the status and reason of APNs.
    ///
    /// A control character in a header would end the header, and every refusal counts against the
    /// sender.
    func faultForAPNs() -> (status: Int, reason: String)? {
        if payload.isEmpty { return (400, "PayloadEmpty") }
        if payload.count > Limits.maximumPayloadBytes { return (413, "PayloadTooLarge") }
        if topic.isEmpty { return (400, "MissingTopic") }
        if !topic.isHeaderText(upTo: Limits.maximumNameBytes) { return (400, "BadTopic") }
        if let collapseID, !collapseID.isHeaderText(upTo: Limits.maximumCollapseIDBytes) {
            return (400, "BadCollapseId")
        }
        switch (pushType, priority) {
        case (.alert, 10), (.alert, 5), (.alert, 1), (.background, 5): return nil
        default: return (400, "BadPriority")
        }
    }
}
