/// What became of rows that were posted.
package enum RowsTaken: Sendable, Hashable {
    /// They are durably in the relay's log.
    case taken
    /// They are, and so many of them are older than what the relay had of them.
    case takenAsOlder(Int)
    /// They are in the log, but for some that could not be mapped or were too long.
    case takenExcept(RowExceptions)
    /// Some are not; they are posted again.
    case not(FollowProblem)
}

/// What is to be said of rows that are in the relay.
package struct RowExceptions: Sendable, Hashable {
    /// How many are older than what the relay had of them.
    package var older = 0
    /// How many could not be mapped, and are parked.
    package var parked = 0
    /// Those that were too long, by table and key: they went in without values, or are parked.
    package var tooLong: [String] = []

    package init(older: Int = 0, parked: Int = 0, tooLong: [String] = []) {
        self.older = older
        self.parked = parked
        self.tooLong = tooLong
    }

    /// What became of the rows as a whole.
    package var outcome: RowsTaken {
        guard parked == 0, tooLong.isEmpty else { return .takenExcept(self) }
        return older > 0 ? .takenAsOlder(older) : .taken
    }

    /// Adds what became of others; returns the problem if these are not in the relay.
    package mutating func add(_ outcome: RowsTaken) -> FollowProblem? {
        switch outcome {
        case .taken: break
        case .takenAsOlder(let count): older += count
        case .takenExcept(let others):
            older += others.older
            parked += others.parked
            tooLong += others.tooLong
        case .not(let problem): return problem
        }
        return nil
    }
}
