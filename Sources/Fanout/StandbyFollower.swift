package import Logging
import Matching
package import RelayModel
package import Storage
import Synchronization

/// Keeps the state of a shard that another process owns, about as of its progress.
///
/// A process that takes over the store then has the state already.
///
/// It reads the registry as a start does, in bounded portions, and afterwards once a second what
/// has ended and begun since. At every moment the state contains exactly the versions up to its
/// last serials that are active at its place. So it can be taken at any moment, even half loaded,
/// and a start continues from there.
///
/// Concurrency: one task runs ``run(from:)``. Taking the state never waits for a database, only for
/// a portion that is being put into the index. Life: run until cancelled.
package final class StandbyFollower: Sendable {
    private struct Held {
        var state: ShardState
        /// The place of the state, or `nil` before anything was read.
        var place: LogPlace?
        /// Whether everything was loaded at least once.
        var isWhole = false
    }

    /// The pause between two looks at the progress.
    private static let pause = Duration.seconds(1)
    /// The longest rest between two portions.
    ///
    /// A rest lasts as long as reading the portion before it, so that the standby uses at most half
    /// of the database's time.
    private static let longestRest = Duration.seconds(1)

    /// The state, or `nil` once it was taken.
    private let held: Mutex<Held?>
    private let makeState: @Sendable () -> ShardState
    private let clock: any Clock<Duration>
    private let portion: Int
    private let logger: Logger
    private let meter = StandbyMeter()

    /// Creates a standby with an empty state.
    ///
    /// - Parameters:
    ///   - indexSeed: A random seed that keeps the hashes of the indexes secret.
    ///   - clock: The clock that measures pauses.
    ///   - portion: The number of versions that are read at a time.
    ///   - logger: The log for the operator.
    package init(
        indexSeed: UInt64, clock: any Clock<Duration>, portion: Int = 5000, logger: Logger
    ) {
        makeState = { ShardState(indexSeed: indexSeed) }
        held = Mutex(Held(state: ShardState(indexSeed: indexSeed)))
        self.clock = clock
        self.portion = portion
        self.logger = logger
    }

    /// Follows until the task is cancelled or the state is taken.
    ///
    /// If the database is away, it retries, and keeps the state.
    package func run(from source: any StandbyVersions) async {
        var last = ""
        while !Task.isCancelled, held.withLock({ $0 != nil }) {
            do {
                try await catchUp(with: source)
                last = ""
            } catch is CancellationError {
                return
            } catch {
                // A fault that goes on is logged only once.
                if "\(error)" != last {
                    last = "\(error)"
                    logger.warning(
                        "cannot follow the store's state; trying again",
                        metadata: ["reason": "\(error)"])
                }
            }
            guard (try? await clock.sleep(for: Self.pause)) != nil else { return }
        }
    }

    /// Brings the state to the current progress, once.
    package func catchUp(with source: any StandbyVersions) async throws {
        let settled = try await source.settledPlace()
        switch held.withLock({ $0?.place }) {
        case settled?:
            // Nothing has changed. Continue only if the state is half loaded.
            if held.withLock({ $0?.isWhole == true }) { return }
        case let place?:
            switch try await source.endings(since: place, upTo: settled.position) {
            case .all(let endings): advance(to: settled, endings)
            case .unknown(let fault): begin(at: settled, because: fault)
            }
        case nil:
            begin(at: settled, because: nil)
        }
        try await load(at: settled.position, source)
    }

    /// The status of the state, or `nil` if nothing was read or the state was taken.
    package var status: StandbyStatus? {
        held.withLock { held in
            held.flatMap { held in
                held.place.map { place in
                    StandbyStatus(
                        position: place.position, isWarm: held.isWhole,
                        subscriptions: held.state.subscriptionCount,
                        devices: held.state.deviceCount)
                }
            }
        }
    }

    /// Moves the state into `shard`, and returns its place.
    ///
    /// Returns `nil` if nothing was read, or if it was taken already.
    func hand(over shard: inout ShardState) -> LogPlace? {
        guard let held = held.withLock({ $0.take() }), let place = held.place else { return nil }
        meter.show(.start, subscriptions: 0)
        shard.take(over: held.state)
        return place
    }

    // MARK: Loading

    private func begin(at place: LogPlace, because fault: StateFault?) {
        if let fault {
            logger.notice(
                "loading the standby state anew",
                metadata: ["reason": "\(fault.rawValue)"])
            meter.countReload()
        }
        held.withLock { held in
            // Release the old state first, so that memory never holds two.
            guard held.take() != nil else { return }
            held = Held(state: makeState(), place: place)
        }
    }

    private func advance(to place: LogPlace, _ endings: [VersionEnding]) {
        held.withLock { held in
            for ending in endings { held?.state.apply(ending) }
            held?.place = place
        }
    }

    private func load(at position: LogPosition, _ source: any StandbyVersions) async throws {
        try await inPortions(after: { $0.lastDevice }) { [portion] serial in
            try await source.devices(activeAt: position, after: serial, limit: portion)
        } insert: { version, state in
            state.insert(version)
        }
        try await inPortions(after: { $0.lastSubscription }) { [portion] serial in
            try await source.subscriptions(activeAt: position, after: serial, limit: portion)
        } insert: { [self] version, state in
            state.activate(version, logger) { meter.countUnreadable() }
        }
        let count = held.withLock { held -> Int? in
            held?.isWhole = true
            return held?.state.subscriptionCount
        }
        if let count { meter.show(position, subscriptions: count) }
    }

    /// Reads versions portion by portion until there are no more, and puts them into the state.
    private func inPortions<Version: Sendable>(
        after last: @Sendable (ShardState) -> UInt64,
        _ read: @Sendable (UInt64) async throws -> [Version],
        insert: @Sendable (Version, inout ShardState) -> Void
    ) async throws {
        while let serial = held.withLock({ held in held.map { last($0.state) } }) {
            try Task.checkCancellation()
            var versions: [Version] = []
            let took = try await clock.measure { versions = try await read(serial) }
            guard !versions.isEmpty else { return }
            held.withLock { held in
                guard var current = held.take() else { return }
                for version in versions { insert(version, &current.state) }
                held = current
            }
            if versions.count >= portion {
                try await clock.sleep(for: min(took, Self.longestRest))
            }
        }
    }
}

/// How far a relay that stands by has loaded the state of its store.
package struct StandbyStatus: Sendable, Hashable {
    /// The log position of the state.
    package var position: LogPosition
    /// Whether everything is loaded.
    package var isWarm: Bool
    /// The number of subscriptions that are loaded.
    package var subscriptions: Int
    /// The number of devices that are loaded.
    package var devices: Int
}
