import Synchronization

/// What became of the parts of one request so far.
final class PartedWrite<Rest: Sendable, Outcome: Sendable>: Sendable {
    private struct State {
        var outcomes: [[Outcome]]
        /// What each part left for the next; `nil` if it was not run.
        var rests: [Rest?]
        /// How many have not ended.
        var open: Int
        var failure: (any Error)?
    }

    private let state: Mutex<State>
    private let start: Rest
    private let answer: @Sendable (Result<[Outcome], any Error>) -> Void

    /// `answer` is called once, when all `parts` have ended.
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

    /// What the parts before one have left.
    func rest(before index: Int) -> Rest {
        state.withLock { $0.rests[..<index].last { $0 != nil } ?? nil } ?? start
    }

    /// Notes what a part came to, which the commit may still undo.
    func note(_ outcomes: [Outcome], leaving rest: Rest, of index: Int) {
        state.withLock { state in
            state.outcomes[index] = outcomes
            state.rests[index] = rest
        }
    }

    /// A part is durable, or has failed; the caller hears of the first failure.
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
