package import Logging
package import RelayModel
import Synchronization

/// What is logged at the least, which an operator may change while the relay runs.
///
/// Every line that might be logged asks: that costs a load, unless the level is set for a span.
/// A lock otherwise: all is short.
package final class LogLevels: Sendable {
    /// What holds, and until when.
    package struct Standing: Sendable, Hashable {
        /// The level in force.
        package var level: Logger.Level
        /// What the configuration says.
        package var configured: Logger.Level
        /// When that holds again; `nil` if no end was given.
        package var until: Timestamp?
    }

    private struct State {
        var configured: Logger.Level
        var set: (level: Logger.Level, until: Timestamp?, span: Duration?)?
    }

    private let state: Mutex<State>
    /// The level in force as its place among all; one less than nothing while it has an end.
    private let current: Atomic<Int>
    private let now: @Sendable () -> Timestamp

    /// The words for levels.
    static let words = levels.map(\.rawValue)
    /// All levels, the most talkative first.
    static let levels = Logger.Level.allCases

    /// Begins with `level`.
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

    /// What holds now; a span that has passed is over.
    package func standing() -> Standing {
        let now = now()
        return state.withLock { state in
            if let until = state.set?.until, until <= now {
                state.set = nil
                publish(state)
            } else if let until = state.set?.until, let span = state.set?.span,
                until.duration(since: now) > span
            {
                // A clock that was set back prolongs no span.
                state.set?.until = now.advanced(by: span)
            }
            return Standing(
                level: state.set?.level ?? state.configured, configured: state.configured,
                until: state.set?.until)
        }
    }

    /// What the configuration says, which holds unless something else was set.
    package func configure(_ level: Logger.Level) {
        state.withLock { state in
            state.configured = level
            publish(state)
        }
    }

    /// Sets the level until further notice, or for a span; `nil` is what the configuration says.
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

/// How lines of the log are written.
package enum LogForm: String, Sendable, Hashable, CaseIterable {
    /// For people.
    case text
    /// One JSON object a line.
    case json
}
