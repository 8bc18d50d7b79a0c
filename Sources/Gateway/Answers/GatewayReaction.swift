package import RelayModel

/// What is to be done after an answer of the gateway.
package enum GatewayReaction: Sendable, Hashable {
    /// The gateway accepted: the delivery is done.
    case deliver
    /// Send again with back-off, not before `after` where the gateway said so; `scope` is who must
    /// wait.
    case retry(after: Duration?, scope: RetryScope)
    /// Send again at once: the gateway room has already turned to a fresh connection.
    case retryOnFreshConnection
    /// Send again at once: the gateway room has already renewed its provider token.
    case renewProviderToken
    /// Do not use the device token again, as far as the verdict allows, and end the delivery.
    case forgetDeviceToken(DeviceTokenVerdict)
    /// End the delivery as a dead letter: it will never be accepted.
    case deadLetter
    /// Let everything for this topic of this container wait until somebody has looked.
    case pauseTopic
    /// Let everything for this container wait until its credential has been replaced.
    case pauseContainer
}

/// Who must wait before a retry.
package enum RetryScope: String, Sendable, Hashable, CaseIterable {
    /// The delivery alone.
    case delivery
    /// Everything for the same device token.
    case device
    /// Everything for the gateway and the container's credential.
    case gateway
}

/// What the gateway's word about a device token is worth.
package enum DeviceTokenVerdict: Sendable, Hashable {
    /// It is dead since that moment; a registration that is newer than it stays.
    ///
    /// Without a moment it is dead at any rate.
    case dead(since: Timestamp?)
    /// The gateway does not know it.
    ///
    /// A wrong environment or topic looks the same, so forget it only while such answers are a few
    /// of a hundred for the topic; beyond that pause the topic.
    case unknownToGateway
}
