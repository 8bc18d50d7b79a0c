package import Logging
import Matching
package import RelayModel
package import Storage
import Synchronization

/// Keeps the state of a shard that another process owns, as of its progress about, so that who
/// takes the owner's place has it already.
///
/// It reads the registry as a start does, in bounded portions, and then what has ended and begun
/// since, once a second. At every moment the state has all versions up to its last serials that
/// are active at its place, and no others: so it can be taken at any moment, also half loaded, and
/// a start goes on from there.
///
/// Concurrency: one task runs ``run(from:)``; whoever takes the state waits for no database, but
/// for a portion that is being put into the index at most. Life: run until cancelled.
package final class StandbyFollower: Sendable {
    private struct Held {
        var state: ShardState
        /// Where the state is; `nil` before anything was read.
        var place: LogPlace?
        /// Whether everything was loaded once.
        var isWhole = false
    }

    /// How long it rests between two looks at the progress.
    private static let pause = Duration.seconds(1)
    /// The longest rest between two portions; it is as long as reading the one before has taken, so
    /// that the database works half of the time for who stands by.
    private static let longestRest = Duration.seconds(1)

    /// `nil` once it is taken.
    private let held: Mutex<Held?>
    private let makeState: @Sendable () -> ShardState
    private let clock: any Clock<Duration>
    private let portion: Int
    private let logger: Logger
    private let meter = StandbyMeter()

    /// Begins with nothing.
    ///
    /// - Parameters:
    ///   - indexSeed: Keeps the hashes of the indexes secret; drawn at random.
    ///   - clock: Measures pauses.
    ///   - portion: How many versions are read at a time.
    ///   - logger: Hears what an operator should know.
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
    /// A database that is away is asked again and again; the state stays.
    package func run(from source: any StandbyVersions) async {
        var last = ""
        while !Task.isCancelled, held.withLock({ $0 != nil }) {
            do {
                try await catchUp(with: source)
                last = ""
            } catch is CancellationError {
                return
            } catch {
                // What goes on for long is told once.
                if "\(error)" != last {
                    last = "\(error)"
                    logger.warning(
                        "cannot follow the store's state for now", metadata: ["reason": "\(error)"])
                }
            }
            guard (try? await clock.sleep(for: Self.pause)) != nil else { return }
        }
    }

    /// Brings the state to where the progress is, once.
    package func catchUp(with source: any StandbyVersions) async throws {
        let settled = try await source.settledPlace()
        switch held.withLock({ $0?.place }) {
        case settled?:
            // Nothing has happened, unless the state is half loaded.
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

    /// What is known of the state, for whoever asks.
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

    /// Puts the state into `shard`, forgets it here, and says of where it is; `nil` if nothing was
    /// read, or it was taken already.
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
                "the state that stands by is loaded anew",
                metadata: ["reason": "\(fault.rawValue)"])
            meter.countReload()
        }
        held.withLock { held in
            // The one before is let go of first.
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

    /// Reads versions portion by portion, and puts them into the state, until there are no more.
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

/// How far a relay that stands by has the state of its store.
package struct StandbyStatus: Sendable, Hashable {
    /// The position of the log of which it is the state.
    package var position: LogPosition
    /// Whether all is loaded.
    package var isWarm: Bool
    /// The subscriptions that are loaded.
    package var subscriptions: Int
    /// The devices that are loaded.
    package var devices: Int
}
