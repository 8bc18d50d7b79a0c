extension DeviceStanding {
    /// Returns what is wrong with a push to a device of this standing, or `nil`.
    func fault(topic: String) -> PushFault? {
        switch self {
        case .registered(let topics):
            guard let topics, !topics.contains(topic) else { return nil }
            return PushFault(
                400, "DeviceTokenNotForTopic",
                "the device token belongs to another topic than '\(topic)'")
        case .unregistered(let since):
            return PushFault(
                410, "Unregistered", "the device token is no longer active", timestamp: since)
        case .expired(let since):
            return PushFault(
                410, "ExpiredToken", "the device token has expired", timestamp: since)
        case .otherEnvironment:
            return PushFault(
                400, "BadDeviceToken", "the device token belongs to the other environment")
        }
    }
}
