import Dispatch
package import Gateway
import RelayModel
import Synchronization

/// A push gateway that answers by a test's script, on a thread of its own.
package final class ScriptedGateway: PushGateway {
    /// The answer to the `attempt`-th request for a delivery, from 1; `nil` answers nothing until
    /// ``answer(_:_:)`` does.
    package typealias Script = @Sendable (PushRequest, _ attempt: Int) -> PushOutcome?

    private struct State {
        var script: Script
        var requests: [PushRequest] = []
        var attempts: [DeliveryID: Int] = [:]
        var unanswered: [UInt64] = []
        var answerCount = 0
        /// The number of answers that are being handed to the sink.
        var answering = 0
        var isClosed = false
    }

    private let state: Mutex<State>
    private let sink: PushCompletionSink
    private let queue = DispatchQueue(label: "belfry.scripted-gateway")

    /// Creates a gateway that answers to `sink`; without a script it accepts everything.
    package init(
        answeringTo sink: @escaping PushCompletionSink,
        script: @escaping Script = { _, _ in .accepted }
    ) {
        self.sink = sink
        state = Mutex(State(script: script))
    }

    /// All requests that were sent, in order.
    package var requests: [PushRequest] { state.withLock { $0.requests } }

    /// The number of answers that were handed to the sink.
    package var answerCount: Int { state.withLock { $0.answerCount } }

    /// Whether no answer is being handed to the sink.
    package var isIdle: Bool { state.withLock { $0.answering == 0 } }

    /// The tickets that the script left unanswered, in order.
    package var unanswered: [UInt64] { state.withLock { $0.unanswered } }

    /// Replaces the script.
    package func follow(_ script: @escaping Script) {
        state.withLock { $0.script = script }
    }

    /// Answers one ticket that was left unanswered.
    package func answer(_ ticket: UInt64, _ outcome: PushOutcome) {
        let isOpen = state.withLock { state in
            let index = state.unanswered.firstIndex(of: ticket)
            if let index { state.unanswered.remove(at: index) }
            return index != nil
        }
        if isOpen { complete([PushCompletion(ticket: ticket, outcome: outcome)]) }
    }

    private func complete(_ completions: [PushCompletion]) {
        guard !completions.isEmpty else { return }
        state.withLock { $0.answering += completions.count }
        queue.async { [self] in
            sink(completions)
            state.withLock {
                $0.answerCount += completions.count
                $0.answering -= completions.count
            }
        }
    }

    // MARK: What the worker asks for

    /// Records the requests, and answers as the script says.
    package func send(_ requests: [PushRequest]) {
        let completions = state.withLock { state in
            requests.compactMap { request -> PushCompletion? in
                state.requests.append(request)
                state.attempts[request.deliveryID, default: 0] += 1
                let attempt = state.attempts[request.deliveryID, default: 0]
                let outcome: PushOutcome? =
                    state.isClosed
                    ? .notSent(cause: "shut down") : state.script(request, attempt)
                guard let outcome else {
                    state.unanswered.append(request.ticket)
                    return nil
                }
                return PushCompletion(ticket: request.ticket, outcome: outcome)
            }
        }
        complete(completions)
    }

    /// Reports all unanswered requests as unknown.
    package func shutDown(within bound: Duration, silence: Duration) async {
        let open = state.withLock { state in
            state.isClosed = true
            defer { state.unanswered = [] }
            return state.unanswered
        }
        complete(
            open.map { PushCompletion(ticket: $0, outcome: .unknown(cause: "shut down")) })
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume() }
        }
    }
}
