import Logging
package import RelayModel
package import Storage

/// What a follower loads before it follows, for whoever waits for it.
package enum LoadingStage: Sendable, Hashable, CustomStringConvertible {
    /// The snapshot is read.
    case snapshot
    /// The devices are being loaded; how many there are so far.
    case devices(Int)
    /// The subscriptions are being loaded; how many there are so far.
    case subscriptions(Int)
    /// The badges are read.
    case badges

    /// What is being done, as a phrase.
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
    /// Loads what was active at `mark`: from the state that stood by, or the newest usable
    /// snapshot, and what the registry says has changed since, or else from the registry alone, in
    /// bounded portions.
    ///
    /// While one portion is put into the index, the next is read. A store that is away for now is
    /// waited for: what was loaded by then stays.
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

    /// Begins with the state that stood by, if there is one that can be trusted.
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
                "the state that stood by is of no use", metadata: ["reason": "\(fault.rawValue)"])
            state.clear()
            return false
        case .all(let endings):
            endings.forEach { state.apply($0) }
            logger.info(
                "began with the state that stood by",
                metadata: [
                    "position": "\(place.position)",
                    "devices": .stringConvertible(state.deviceCount),
                    "subscriptions": .stringConvertible(state.subscriptionCount),
                    "ended": .stringConvertible(endings.count),
                ])
            // None of it is in a snapshot of this process; but what waits goes first.
            edits += state.deviceCount + state.subscriptionCount
            snapshots?.postpone()
            return true
        }
    }

    /// Loads anew what was active at `position`, from the registry alone.
    ///
    /// The badges stay: they are not the log's.
    mutating func reload(at position: LogPosition, portion: Int = 5000) async throws {
        guard let registry else { return }
        let before = state
        state.clear()
        do {
            try await loadDevices(position, registry, portion) { _ in }
            try await loadSubscriptions(position, registry, portion) { _ in }
        } catch {
            // Half a state must not become a snapshot.
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
        // What is lent is in no image.
        guard putOff.isEmpty else { return }
        let entries = state.subscriptionCount + state.deviceCount
        guard let snapshots, snapshots.isDue(edits: edits, of: entries) else { return }
        var image: StateImage?
        let pause = snapshots.clock.measure { image = self.image() }
        guard let image else { return }
        snapshots.take(image, pause: pause)
        edits = 0
    }

    /// The state where following ended, if it is worth a snapshot.
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

    /// Waits until there is more in the log, or a snapshot may be due.
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
    /// Makes a subscription active; one that cannot be read is told and left out.
    mutating func activate(
        _ version: SubscriptionVersion, _ logger: Logger, onUnreadable: () -> Void
    ) {
        do {
            try insert(version)
        } catch {
            logger.error(
                "left out a subscription whose condition cannot be read",
                metadata: ["serial": "\(version.serial)", "reason": "\(error)"])
            onUnreadable()
        }
    }

    /// Ends what the registry says has ended.
    mutating func apply(_ ending: VersionEnding) {
        switch ending.kind {
        case .subscription: removeSubscription(ending.serial, of: ending.container)
        case .device: removeDevices([ending.serial], of: ending.container)
        }
    }
}
