import Synchronization

/// The outcomes of a request's parts so far.
final class PartedWrite<Rest: Sendable, Outcome: Sendable>: Sendable {
    private struct State {
        var outcomes: [[Outcome]]
        /// What each part left for the next; `nil` if the part was not run.
        var rests: [Rest?]
        /// The number of parts that have not ended.
        var open: Int
        var failure: (any Error)?
    }

    private let state: Mutex<State>
    private let start: Rest
    private let answer: @Sendable (Result<[Outcome], any Error>) -> Void

    /// Creates the state of a request with `parts` parts.
    ///
    /// `answer` is called once, when all of them have ended.
    init(
        parts: Int, _ start: Rest,
        answer: @escaping @Sendable (Result<[Outcome], any Error>) -> Void
    ) {
        state = Mutex(
            State(
                outcomes: Array(repeating: [], count: parts),
                rests: Array(repeating: nil, count: parts), open: parts))
        self.start = start
        self.answer = answer
    }

    /// Returns what the parts before a part have left.
    func rest(before index: Int) -> Rest {
        state.withLock { $0.rests[..<index].last { $0 != nil } ?? nil } ?? start
    }

    /// Records the outcomes of a part.
    ///
    /// The commit may still be undone and the part run again.
    func note(_ outcomes: [Outcome], leaving rest: Rest, of index: Int) {
        state.withLock { state in
            state.outcomes[index] = outcomes
            state.rests[index] = rest
        }
    }

    /// Notes that a part is durable or has failed.
    ///
    /// The caller gets the first failure.
    func end(_ failure: (any Error)?) {
        let result: Result<[Outcome], any Error>? = state.withLock { state in
            state.open -= 1
            state.failure = state.failure ?? failure
            guard state.open == 0 else { return nil }
            if let failure = state.failure { return .failure(failure) }
            return .success(state.outcomes.flatMap(\.self))
        }
        if let result { answer(result) }
    }
}
