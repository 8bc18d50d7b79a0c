package import Logging
package import RelayModel
import Synchronization

/// The lowest level that is logged, which an operator may change while the relay runs.
///
/// Every possible log line reads it. This costs one atomic load, unless the level is set for a
/// limited time.
///
/// Concurrency: a lock around short sections, and an atomic.
package final class LogLevels: Sendable {
    /// The level in force, and its end.
    package struct Standing: Sendable, Hashable {
        /// The level in force.
        package var level: Logger.Level
        /// The level in the configuration.
        package var configured: Logger.Level
        /// When the configured level applies again; `nil` if no end was given.
        package var until: Timestamp?
    }

    private struct State {
        var configured: Logger.Level
        var set: (level: Logger.Level, until: Timestamp?, span: Duration?)?
    }

    private let state: Mutex<State>
    /// The index of the level in force among `levels`; -1 while the level has an end.
    private let current: Atomic<Int>
    private let now: @Sendable () -> Timestamp

    /// The names of the levels.
    static let words = levels.map(\.rawValue)
    /// All levels, the most verbose first.
    static let levels = Logger.Level.allCases

    /// Creates levels with `level` as the configured one.
    package init(_ level: Logger.Level = .info, now: @escaping @Sendable () -> Timestamp) {
        self.now = now
        state = Mutex(State(configured: level))
        current = Atomic(Self.place(of: level))
    }

    /// The level in force.
    package var level: Logger.Level {
        let place = current.load(ordering: .relaxed)
        return place >= 0 ? Self.levels[place] : standing().level
    }

    /// Returns the level in force now; a time limit that has passed no longer counts.
    package func standing() -> Standing {
        let now = now()
        return state.withLock { state in
            if let until = state.set?.until, until <= now {
                state.set = nil
                publish(state)
            } else if let until = state.set?.until, let span = state.set?.span,
                until.duration(since: now) > span
            {
                // A clock that was set back must not extend the time.
                state.set?.until = now.advanced(by: span)
            }
            return Standing(
                level: state.set?.level ?? state.configured, configured: state.configured,
                until: state.set?.until)
        }
    }

    /// Sets the configured level, which applies unless another was set.
    package func configure(_ level: Logger.Level) {
        state.withLock { state in
            state.configured = level
            publish(state)
        }
    }

    /// Sets the level until further notice or for a time; `nil` restores the configured level.
    package func set(_ level: Logger.Level?, for span: Duration? = nil) {
        let until = span.map { now().advanced(by: $0) }
        state.withLock { state in
            state.set = level.map { ($0, until, span) }
            publish(state)
        }
    }

    private func publish(_ state: State) {
        let place =
            state.set?.until == nil ? Self.place(of: state.set?.level ?? state.configured) : -1
        current.store(place, ordering: .relaxed)
    }

    private static func place(of level: Logger.Level) -> Int {
        levels.firstIndex(of: level) ?? 0
    }
}

/// The format of the log.
package enum LogForm: String, Sendable, Hashable, CaseIterable {
    /// Text for people.
    case text
    /// One JSON object on each line.
    case json
}
