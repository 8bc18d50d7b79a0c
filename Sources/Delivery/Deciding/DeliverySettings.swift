import RelayModel

/// What can be set of the worker.
package struct DeliverySettings: Sendable, Hashable {
    /// Deliveries of the log admitted and not yet passed.
    ///
    /// A crash repeats these at most, as many again that are adopted as retries while the
    /// gateway does not answer, and besides the retries of ``retryWindow``.
    package var window = Limits.maximumDeliveriesInFlight
    /// Deliveries of ranges admitted and not yet passed, which a crash repeats too.
    ///
    /// They share the gateway with the log's: few, so that those need not wait long.
    package var rangeWindow = 512
    /// Retries that are worked and have no recorded end, which a crash repeats too.
    package var retryWindow = 2048
    /// The least time between two steps, unless ``stepSize`` is reached.
    package var stepInterval: Duration = .milliseconds(10)
    /// Settled deliveries that are recorded without waiting.
    package var stepSize = 512
    /// How long the front of the window may wait for an answer before it becomes a retry.
    package var slowAfter: Duration = .seconds(2)
    /// Background pushes that one device gets in an hour; 0 for any number.
    ///
    /// Apple asks for two or three.
    package var silentPushesPerHour = 0

    package init() {}
}
