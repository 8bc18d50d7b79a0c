package import RelayModel

/// Ranges of very large fan-outs: what a change owes for some of the subscriptions that it fires,
/// worked beside the log.
///
/// A range is written in the step in which the progress passes its change. Its row is deleted in
/// the step that settles its last delivery. So at any moment everything owed lies after the
/// progress, in a retry, or in a range. What a range owes is computed from its serials and from
/// what was active at the change's position, so repeating the computation gives the same
/// deliveries.
package protocol FanoutRanges: Sendable {
    /// Returns the containers that have ranges, in a stable order.
    func containersWithRanges() async throws -> [ContainerKey]
    /// Returns the first range of a container with an ID above `id`, or `nil` if there is none.
    ///
    /// A range with unreadable serials is marked (`isReadable`), and the caller must set it aside.
    func nextRange(of container: ContainerKey, after id: UInt64) async throws -> FanoutRange?
    /// Removes an unworkable range from the work and keeps it with the reason, so that it does not
    /// block the pruning of the log forever.
    func setAside(_ range: FanoutRange, because reason: String, at now: Timestamp) async throws
    /// Returns the subscriptions with these serials and their owners' devices as they were active
    /// at the range's position, in the order of the serials, without unreadable ones.
    func members(
        _ serials: ArraySlice<UInt64>, of range: FanoutRange
    ) async throws -> [RangeMember]
    /// Writes the notifications that a range owes to inboxes.
    ///
    /// Existing ones stay unchanged.
    ///
    /// The notifications are durable when it returns, so that no push of a range is sent before its
    /// notification is stored.
    func keep(_ inbox: [InboxEntry]) async throws
    /// A stream, for one reader, that yields when ranges were written; one element may stand for
    /// several ranges.
    var rangesAppeared: AsyncStream<Void> { get }
}

/// A range to be written.
package struct NewRange: Sendable, Hashable {
    /// The container of the change.
    package var container: ContainerKey
    /// The change.
    package var position: LogPosition
    /// The serials of the subscriptions, ascending.
    package var serials: [UInt64]

    package init(container: ContainerKey, position: LogPosition, serials: [UInt64]) {
        self.container = container
        self.position = position
        self.serials = serials
    }
}

/// A stored range.
package struct FanoutRange: Sendable, Hashable {
    /// The number, which ascends in the order of writing.
    package var id: UInt64
    /// The container of the change.
    package var container: ContainerKey
    /// The change.
    package var position: LogPosition
    /// The serials of the subscriptions, ascending.
    package var serials: [UInt64]
    /// The number of the range's deliveries that are settled.
    package var offset: UInt32
    /// Whether the serials could be read.
    ///
    /// If not, `serials` is empty.
    package var isReadable = true

    package init(
        id: UInt64, container: ContainerKey, position: LogPosition, serials: [UInt64],
        offset: UInt32
    ) {
        self.id = id
        self.container = container
        self.position = position
        self.serials = serials
        self.offset = offset
    }
}

/// One subscription of a range, with its owner's devices.
package struct RangeMember: Sendable, Hashable {
    /// The subscription.
    package var version: SubscriptionVersion
    /// The devices of its owner, by ascending serial.
    package var devices: [DeviceVersion]

    package init(version: SubscriptionVersion, devices: [DeviceVersion]) {
        self.version = version
        self.devices = devices
    }
}

/// The progress that a step makes within a range.
package struct RangeStep: Sendable, Hashable {
    /// The range.
    package var id: UInt64
    /// The number of deliveries settled before the step.
    package var from: UInt32
    /// The number of deliveries settled after the step.
    package var to: UInt32
    /// Whether all deliveries are settled, so that the row is deleted.
    package var isFinished: Bool

    package init(id: UInt64, from: UInt32, to: UInt32, isFinished: Bool) {
        self.id = id
        self.from = from
        self.to = to
        self.isFinished = isFinished
    }
}

/// Deliveries of one range, in order.
package struct RangeBatch: Sendable, Hashable {
    /// The range.
    package var id: UInt64
    /// The number of the range's deliveries before these.
    package var offset: UInt32
    /// The deliveries.
    package var deliveries: [OwedDelivery]
    /// Whether these are the last deliveries of the range.
    package var isLast: Bool
    /// What the range did to its subscriptions; given with its last deliveries.
    package var firing: FiringNote?

    package init(
        id: UInt64, offset: UInt32, deliveries: [OwedDelivery], isLast: Bool,
        firing: FiringNote? = nil
    ) {
        self.firing = firing
        self.id = id
        self.offset = offset
        self.deliveries = deliveries
        self.isLast = isLast
    }
}
