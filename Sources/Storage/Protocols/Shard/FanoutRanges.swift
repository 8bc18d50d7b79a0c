package import RelayModel

/// Ranges of huge fan-outs: what a change owes by some of the subscriptions that it fires, worked
/// beside the log.
///
/// A range is written in the step in which the progress passes its change, and its row goes in the
/// step that settles its last delivery. So at any moment all that is owed lies after the progress,
/// in a retry, or in a range. What a range owes is computed from its serials and from what was
/// active at the change's position, and comes out the same as often as it is computed.
package protocol FanoutRanges: Sendable {
    /// The containers that have ranges, in a stable order.
    func containersWithRanges() async throws -> [ContainerKey]
    /// The first range of a container with an ID above `id`; `nil` if there is none.
    ///
    /// One whose serials cannot be read says so, and is to be set aside.
    func nextRange(of container: ContainerKey, after id: UInt64) async throws -> FanoutRange?
    /// Takes a range out of the work that cannot be worked, and keeps it with the reason, so that
    /// it does not keep the log from being pruned forever.
    func setAside(_ range: FanoutRange, because reason: String, at now: Timestamp) async throws
    /// The subscriptions with these serials and their owners' devices, as they were active at the
    /// range's position, in the order of the serials; without those that cannot be read.
    func members(
        _ serials: ArraySlice<UInt64>, of range: FanoutRange
    ) async throws -> [RangeMember]
    /// Writes what a range owes to inboxes; what is there already stays as it is.
    ///
    /// Durable when it returns, so that no push of a range is known without its notification.
    func keep(_ inbox: [InboxEntry]) async throws
    /// Says that ranges were written, one element for any number of them; for one reader.
    var rangesAppeared: AsyncStream<Void> { get }
}

/// A range that is to be written.
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

/// A range as it is kept.
package struct FanoutRange: Sendable, Hashable {
    /// Its number, ascending in the order of writing.
    package var id: UInt64
    /// The container of the change.
    package var container: ContainerKey
    /// The change.
    package var position: LogPosition
    /// The serials of the subscriptions, ascending.
    package var serials: [UInt64]
    /// How many deliveries of the range are settled.
    package var offset: UInt32
    /// Whether its serials could be read; otherwise there are none.
    package var isReadable = true

    /// Creates a range as it was read.
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

/// One subscription of a range with the devices of its owner.
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

/// How far a step settles a range.
package struct RangeStep: Sendable, Hashable {
    /// The range.
    package var id: UInt64
    /// How many deliveries were settled before the step.
    package var from: UInt32
    /// How many are settled after it.
    package var to: UInt32
    /// Whether those are all: the row goes.
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
    /// How many deliveries of the range come before these.
    package var offset: UInt32
    /// The deliveries.
    package var deliveries: [OwedDelivery]
    /// Whether the range has no more.
    package var isLast: Bool
    /// What the range did to its subscriptions, with its last deliveries.
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
