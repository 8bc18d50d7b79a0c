package import RelayModel

/// The reaction to an answer of the gateway.
package enum GatewayReaction: Sendable, Hashable {
    /// The gateway accepted: the delivery is done.
    case deliver
    /// Send again with back-off, and not before `after` if the gateway gave a time.
    ///
    /// `scope` says which deliveries must wait.
    case retry(after: Duration?, scope: RetryScope)
    /// Send again at once: the gateway room has already turned to a fresh connection.
    case retryOnFreshConnection
    /// Send again at once: the gateway room has already renewed its provider token.
    case renewProviderToken
    /// Do not use the device token again, as far as the verdict allows, and end the delivery.
    case forgetDeviceToken(DeviceTokenVerdict)
    /// End the delivery as a dead letter: it will never be accepted.
    case deadLetter
    /// Let all deliveries for this topic of the container wait until the settings are fixed.
    case pauseTopic
    /// Let all deliveries of this container wait until its credential has been replaced.
    case pauseContainer
}

/// The deliveries that must wait before a retry.
package enum RetryScope: String, Sendable, Hashable, CaseIterable {
    /// The delivery alone.
    case delivery
    /// All deliveries for the same device token.
    case device
    /// All deliveries for the gateway with the container's credential.
    case gateway
}

/// What the gateway's answer says about a device token.
package enum DeviceTokenVerdict: Sendable, Hashable {
    /// The token has been dead since that moment.
    ///
    /// A newer registration stays valid.
    ///
    /// Without a moment, the token is dead in any case.
    case dead(since: Timestamp?)
    /// The gateway does not know the token.
    ///
    /// A wrong environment or topic looks the same. So forget the token only while such answers are
    /// a small part of the topic's. Beyond that, pause the topic.
    case unknownToGateway
}
