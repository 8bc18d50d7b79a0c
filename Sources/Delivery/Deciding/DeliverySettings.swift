import RelayModel

/// The settings of the delivery worker.
package struct DeliverySettings: Sendable, Hashable {
    /// The maximum number of deliveries of the log that are admitted and not yet passed.
    ///
    /// A crash repeats at most these. While the gateway does not answer, it also repeats as many
    /// that were adopted as retries. It repeats the retries of ``retryWindow`` too.
    package var window = Limits.maximumDeliveriesInFlight
    /// The maximum number of deliveries of ranges that are admitted and not yet passed, which a
    /// crash repeats too.
    ///
    /// They share the gateway with those of the log. There are few, so that those of the log need
    /// not wait long.
    package var rangeWindow = 512
    /// The maximum number of retries that are worked and have no recorded end, which a crash
    /// repeats too.
    package var retryWindow = 2048
    /// The shortest time between two steps, unless ``stepSize`` is reached.
    package var stepInterval: Duration = .milliseconds(10)
    /// The number of settled deliveries that are recorded without waiting.
    package var stepSize = 512
    /// How long the first delivery of the window may wait for an answer before it becomes a retry.
    package var slowAfter: Duration = .seconds(2)
    /// The maximum number of background pushes to one device in an hour.
    ///
    /// 0 means no limit.
    ///
    /// Apple asks for two or three.
    package var silentPushesPerHour = 0

    package init() {}
}
