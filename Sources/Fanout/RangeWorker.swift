package import Logging
package import RelayModel
package import Storage

/// Works the ranges of huge fan-outs, beside the log: reads what was active at the change, expands
/// it, composes the pushes, and hands them over.
///
/// Containers take turns, range by range. Memory is bounded by two portions of a range.
/// Concurrency: one task runs ``run()``, and only that task touches the worker's state, except the
/// badges. It suspends while the receiver of deliveries has no room. Life: run until cancelled.
package struct RangeWorker: ~Copyable {
    /// Takes the deliveries, and suspends while there is no room.
    package typealias Taker = @Sendable (RangeBatch) async throws -> Void

    private let log: any ShardLog
    private let ranges: any FanoutRanges
    private let identity: DeliveryIdentity
    private let badges: BadgeCounts
    private let settings: Follower.SettingsSource
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private let patience: StorePatience
    private let take: Taker
    private let meter = FanoutMeter()
    /// The last range of each container that was handed over.
    ///
    /// Its row stays until it is settled.
    private var handedOver: [ContainerKey: UInt64] = [:]
    /// The log entry of the last range.
    ///
    /// The ranges of one change follow each other.
    private var lastEntry: LogEntry?

    /// Creates a worker that has handed nothing over.
    ///
    /// The badges are those of the follower, which must have recovered. `now` tells when a range
    /// was set aside. `clock` measures the waits for a full disk.
    package init(
        log: any ShardLog, ranges: any FanoutRanges, identity: DeliveryIdentity,
        badges: BadgeCounts, settings: @escaping Follower.SettingsSource, logger: Logger,
        now: @escaping @Sendable () -> Timestamp = { Timestamp(seconds: 0) },
        clock: any Clock<Duration>, take: @escaping Taker
    ) {
        self.log = log
        self.ranges = ranges
        self.identity = identity
        self.badges = badges
        self.settings = settings
        self.logger = logger
        self.now = now
        patience = StorePatience(clock: clock) { error in
            logger.error(
                "cannot process fan-out ranges; trying again", metadata: ["reason": "\(error)"])
        }
        self.take = take
    }

    /// Works the open ranges, and those that appear, until the task is cancelled.
    package mutating func run() async throws {
        try await workAll()
        for await _ in ranges.rangesAppeared { try await workAll() }
        try Task.checkCancellation()
    }

    /// Hands over all ranges that exist, and those that appear meanwhile.
    package mutating func workAll() async throws {
        while true {
            var isIdle = true
            let containers = try await patience.attempt { [ranges] in
                try await ranges.containersWithRanges()
            }
            for container in containers {
                try Task.checkCancellation()
                let last = handedOver[container] ?? 0
                let range = try await patience.attempt { [ranges] in
                    try await ranges.nextRange(of: container, after: last)
                }
                guard let range else { continue }
                isIdle = false
                do {
                    try await work(range)
                } catch let error as UnworkableRange {
                    try await setAside(range, because: error.reason)
                } catch let error as StorageError where error.isOfOneEntry {
                    try await setAside(range, because: "\(error)")
                }
                handedOver[container] = range.id
            }
            if isIdle { return }
        }
    }

    /// Sets a range aside that no later start could work either.
    ///
    /// While its row existed, nothing of the log after it could be pruned.
    private func setAside(_ range: FanoutRange, because reason: String) async throws {
        logger.critical(
            "set aside a fan-out range that cannot be processed",
            metadata: [
                "range": "\(range.id)", "position": "\(range.position)", "reason": "\(reason)",
            ])
        meter.countUnreadableRange()
        try await patience.attempt { [ranges, now] in
            try await ranges.setAside(range, because: reason, at: now())
        }
    }

    private mutating func work(_ range: FanoutRange) async throws {
        guard range.isReadable else {
            throw UnworkableRange("its serials cannot be read")
        }
        let (entry, change) = try await change(at: range.position)
        guard let settings = settings(range.container) else {
            throw StorageError.unknownContainer(range.container)
        }
        var fanout = ChangeFanout(
            of: change, at: entry.position, appendedAt: entry.appendedAt, identity: identity,
            settings: settings, firstOffset: range.offset)
        var offset = range.offset
        let reading = RangeReading(range: range, ranges: ranges, patience: patience)
        var members = try await reading.members(from: 0)
        for start in stride(from: 0, to: range.serials.count, by: RangeReading.portion) {
            // The next portion is read while the deliveries of this one wait for room.
            let end = min(start + RangeReading.portion, range.serials.count)
            async let following = reading.members(from: end)
            for member in members {
                fanout.append(
                    member.version.subscription, serial: member.version.serial,
                    to: member.devices, badges)
            }
            // No observer is told of them here, and a range may have many.
            _ = fanout.takeSuppressed()
            let inbox = fanout.takeInbox()
            if !inbox.isEmpty {
                try await patience.attempt { [ranges] in try await ranges.keep(inbox) }
            }
            let deliveries = fanout.takeDeliveries()
            meter.countDeliveries(deliveries.count)
            let isLast = end == range.serials.count
            if isLast || !deliveries.isEmpty {
                CrashPoint.range.reach()
                // Every start expands the whole range, so that its end knows all of it.
                let firing =
                    isLast
                    ? FiringNote(
                        position: range.position, at: entry.appendedAt, fired: range.serials,
                        unreached: fanout.unreached) : nil
                try await take(
                    RangeBatch(
                        id: range.id, offset: offset, deliveries: deliveries, isLast: isLast,
                        firing: firing))
                offset += UInt32(deliveries.count)
            }
            members = try await following
        }
    }

    private mutating func change(
        at position: LogPosition
    ) async throws -> (LogEntry, RecordChange) {
        if lastEntry?.position != position {
            lastEntry = try await patience.attempt { [log] in
                try await log.entries(after: LogPosition(position.rawValue - 1), limit: 1)
            }.first
        }
        guard let entry = lastEntry, entry.position == position,
            case .change(let change, _, _) = entry.body
        else {
            throw UnworkableRange("there is no change at \(position)")
        }
        return (entry, change)
    }
}

/// Reads the subscriptions of a range in portions.
private struct RangeReading: Sendable {
    /// The number of subscriptions that are read and expanded at a time.
    static let portion = 256

    let range: FanoutRange
    let ranges: any FanoutRanges
    let patience: StorePatience

    /// Returns a portion of the range, which is empty beyond its end.
    func members(from start: Int) async throws -> [RangeMember] {
        guard start < range.serials.count else { return [] }
        return try await patience.attempt {
            try await ranges.members(range.serials[start...].prefix(Self.portion), of: range)
        }
    }
}

/// The reason why no later start can work a range either.
private struct UnworkableRange: Error {
    let reason: String

    init(_ reason: String) {
        self.reason = reason
    }
}

extension StorageError {
    /// Whether the error concerns only one entry of the log.
    ///
    /// Damage of the store concerns more.
    var isOfOneEntry: Bool {
        if case .unreadable = self { true } else { false }
    }
}
