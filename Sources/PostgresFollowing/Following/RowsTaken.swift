/// The outcome of posting rows.
package enum RowsTaken: Sendable, Hashable {
    /// All are durably in the relay's log.
    case taken
    /// All are, and this many are older than the relay's versions of their records.
    case takenAsOlder(Int)
    /// All were taken, but some could not be mapped or were too long.
    case takenExcept(RowExceptions)
    /// Some rows are not in the relay, and all are posted again.
    case not(FollowProblem)
}

/// The exceptions among rows that the relay has taken.
package struct RowExceptions: Sendable, Hashable {
    /// The number of rows that are older than the relay's versions of their records.
    package var older = 0
    /// The number of rows that could not be mapped and are parked.
    package var parked = 0
    /// The table and key of each row that was too long; it was taken without values, or is parked.
    package var tooLong: [String] = []

    package init(older: Int = 0, parked: Int = 0, tooLong: [String] = []) {
        self.older = older
        self.parked = parked
        self.tooLong = tooLong
    }

    /// The outcome of posting all the rows.
    package var outcome: RowsTaken {
        guard parked == 0, tooLong.isEmpty else { return .takenExcept(self) }
        return older > 0 ? .takenAsOlder(older) : .taken
    }

    /// Adds the outcome of other rows; returns the problem if the relay has not taken them.
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
