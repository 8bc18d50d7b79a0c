import Logging
package import RelayModel
package import Storage

/// What a follower is loading before it follows, for progress reports.
package enum LoadingStage: Sendable, Hashable, CustomStringConvertible {
    /// The snapshot is being read.
    case snapshot
    /// The devices are being loaded.
    ///
    /// The value is their number so far.
    case devices(Int)
    /// The subscriptions are being loaded.
    ///
    /// The value is their number so far.
    case subscriptions(Int)
    /// The badges are being read.
    case badges

    /// The stage as a phrase.
    package var description: String {
        switch self {
        case .snapshot: "reading the snapshot"
        case .devices(let count): "loading devices, \(count) so far"
        case .subscriptions(let count): "loading subscriptions, \(count) so far"
        case .badges: "reading badges"
        }
    }
}

extension Follower {
    /// Loads what was active at `mark`, in portions of bounded size.
    ///
    /// It begins with the state of `standby`, or with the newest usable snapshot, and then loads
    /// what has changed since according to the registry. If there is neither, it loads everything
    /// from the registry. While one portion goes into the index, the next one is read. If the store
    /// is away for now, it waits and keeps what is already loaded.
    package mutating func recover(
        at mark: ProgressMark, from registry: any StandbyVersions & StateSnapshots,
        standby: StandbyFollower? = nil, portion: Int = 5000,
        onLoading: (LoadingStage) -> Void = { _ in }
    ) async throws {
        worked = mark.position
        self.registry = registry
        let isWarm = try await begin(with: standby, at: mark.position, registry)
        if !isWarm, let snapshots {
            onLoading(.snapshot)
            if let start = try await snapshots.load(&state, upTo: mark.position) {
                let endings = try await patience.attempt {
                    try await registry.endings(after: start, upTo: mark.position)
                }
                endings.forEach { state.apply($0) }
                edits += endings.count
            }
        }
        try await loadDevices(mark.position, registry, portion, onLoading)
        try await loadSubscriptions(mark.position, registry, portion, onLoading)
        onLoading(.badges)
        let badges = try await patience.attempt { try await registry.badges() }
        for (holder, badge) in badges { state.set(badge, of: holder) }
        state.noteLoaded(mark.position)
        meter.show(subscriptions: state.subscriptionCount)
    }

    /// Begins with the state of the standby follower, if there is one that can be trusted.
    ///
    /// Returns whether it did.
    private mutating func begin(
        with standby: StandbyFollower?, at position: LogPosition, _ registry: any StandbyVersions
    ) async throws -> Bool {
        guard let place = standby?.hand(over: &state) else { return false }
        let endings = try await patience.attempt {
            try await registry.endings(since: place, upTo: position)
        }
        switch endings {
        case .unknown(let fault):
            logger.notice(
                "the standby state cannot be used; loading the state anew",
                metadata: ["reason": "\(fault.rawValue)"])
            state.clear()
            return false
        case .all(let endings):
            endings.forEach { state.apply($0) }
            logger.info(
                "started with the standby state",
                metadata: [
                    "position": "\(place.position)",
                    "devices": .stringConvertible(state.deviceCount),
                    "subscriptions": .stringConvertible(state.subscriptionCount),
                    "ended": .stringConvertible(endings.count),
                ])
            // No snapshot of this process contains this state. But the first snapshot can wait: the
            // entries that wait in the log go first.
            edits += state.deviceCount + state.subscriptionCount
            snapshots?.postpone()
            return true
        }
    }

    /// Loads again what was active at `position`, from the registry alone.
    ///
    /// The badges stay, because the registry's versions do not contain them.
    mutating func reload(at position: LogPosition, portion: Int = 5000) async throws {
        guard let registry else { return }
        let before = state
        state.clear()
        do {
            try await loadDevices(position, registry, portion) { _ in }
            try await loadSubscriptions(position, registry, portion) { _ in }
        } catch {
            // An incomplete state must not become a snapshot.
            state = before
            throw error
        }
        state.noteLoaded(position)
        meter.show(subscriptions: state.subscriptionCount)
    }

    private mutating func loadDevices(
        _ position: LogPosition, _ registry: any ActiveVersions, _ portion: Int,
        _ onLoading: (LoadingStage) -> Void
    ) async throws {
        let patience = patience
        @Sendable func read(after serial: UInt64) async throws -> [DeviceVersion] {
            try await patience.attempt {
                try await registry.devices(activeAt: position, after: serial, limit: portion)
            }
        }
        var versions = try await read(after: state.lastDevice)
        while let serial = versions.last?.serial {
            async let next = read(after: serial)
            for version in versions { state.insert(version) }
            edits += versions.count
            onLoading(.devices(state.deviceCount))
            versions = try await next
        }
    }

    private mutating func loadSubscriptions(
        _ position: LogPosition, _ registry: any ActiveVersions, _ portion: Int,
        _ onLoading: (LoadingStage) -> Void
    ) async throws {
        let patience = patience
        @Sendable func read(after serial: UInt64) async throws -> [SubscriptionVersion] {
            try await patience.attempt {
                try await registry.subscriptions(activeAt: position, after: serial, limit: portion)
            }
        }
        var versions = try await read(after: state.lastSubscription)
        while let serial = versions.last?.serial {
            async let next = read(after: serial)
            for version in versions { activate(version) }
            edits += versions.count
            onLoading(.subscriptions(state.subscriptionCount))
            versions = try await next
        }
    }

    // MARK: Snapshots

    /// Offers a snapshot, if one is due.
    mutating func offerSnapshot() {
        // The image would lack the state of containers that is lent to jobs.
        guard putOff.isEmpty else { return }
        let entries = state.subscriptionCount + state.deviceCount
        guard let snapshots, snapshots.isDue(edits: edits, of: entries) else { return }
        var image: StateImage?
        let pause = snapshots.clock.measure { image = self.image() }
        guard let image else { return }
        snapshots.take(image, pause: pause)
        edits = 0
    }

    /// Returns the image of the state where following ended, if it is worth a snapshot.
    package mutating func lastImage() -> StateImage? {
        guard putOff.isEmpty else { return nil }
        let entries = state.subscriptionCount + state.deviceCount
        guard let snapshots, snapshots.isWorthwhile(edits: edits, of: entries) else { return nil }
        return image()
    }

    private func image() -> StateImage? {
        do {
            return try StateImage(state, at: worked)
        } catch {
            logger.error("could not take an image", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    /// Waits until the log has grown, or a snapshot may be due.
    func waitForGrowth(beyond position: LogPosition) async throws {
        let entries = state.subscriptionCount + state.deviceCount
        guard let snapshots, snapshots.isWorthwhile(edits: edits, of: entries) else {
            return try await log.waitForGrowth(beyond: position)
        }
        try await withThrowingTaskGroup(of: Void.self) { [log] group in
            group.addTask { try await log.waitForGrowth(beyond: position) }
            group.addTask { try await snapshots.waitUntilDue() }
            try await group.next()
            group.cancelAll()
        }
    }
}

extension ShardState {
    /// Makes a subscription active.
    ///
    /// A subscription that cannot be read is logged and left out.
    mutating func activate(
        _ version: SubscriptionVersion, _ logger: Logger, onUnreadable: () -> Void
    ) {
        do {
            try insert(version)
        } catch {
            logger.error(
                "skipped a subscription whose condition cannot be read",
                metadata: ["serial": "\(version.serial)", "reason": "\(error)"])
            onUnreadable()
        }
    }

    /// Ends a version that has ended according to the registry.
    mutating func apply(_ ending: VersionEnding) {
        switch ending.kind {
        case .subscription: removeSubscription(ending.serial, of: ending.container)
        case .device: removeDevices([ending.serial], of: ending.container)
        }
    }
}
