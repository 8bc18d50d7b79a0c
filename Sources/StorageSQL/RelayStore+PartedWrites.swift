import RelayModel
import Storage

extension RelayStore {
    /// Has the writer run the operations of one request, and returns what became of each once all
    /// is durable.
    ///
    /// Those that stand for themselves come to the writer in parts, of which each is a turn: a
    /// request of two hundred would otherwise keep it from everybody else for all of them. The
    /// parts stay in their order. If one fails as a whole, those before it are kept and the caller
    /// hears of the failure, as if the relay had ended between them.
    ///
    /// `body` runs a part, and may run more than once. What it leaves of `start` is what the next
    /// part begins with. Of the first the time is told that as many edits take that go `along`.
    func write<Edit: Sendable, Rest: Sendable, Outcome: Sendable>(
        _ edits: [Edit], _ atomicity: EditAtomicity, _ lane: WriteRequest.Lane = .own,
        of container: ContainerKey, along: Int = 0, from start: Rest,
        _ body: @escaping @Sendable ([Edit], inout Rest, inout OpenCommit) throws -> [Outcome]
    ) async throws -> [Outcome] {
        let parts = atomicity == .independent ? edits.inTurns : [edits]
        return try await withCheckedThrowingContinuation { continuation in
            let write = PartedWrite<Rest, Outcome>(parts: parts.count, start) {
                continuation.resume(with: $0)
            }
            let requests = parts.enumerated().map { index, part in
                WriteRequest(
                    lane: lane, container: container,
                    changes: (part.count + (index == 0 ? along : 0))
                        * WriteRequest.changesPerEdit, bytes: 0,
                    answersCaller: index == parts.count - 1,
                    perform: { commit in
                        var rest = write.rest(before: index)
                        let outcomes = try body(part, &rest, &commit)
                        write.note(outcomes, leaving: rest, of: index)
                        return { write.end(nil) }
                    },
                    fail: { [engine] in write.end(engine.translated($0)) })
            }
            if let refusal = engine.submit(requests) { continuation.resume(throwing: refusal) }
        }
    }
}

private extension Array {
    /// The elements, as many at a time as are a turn at the writer if each is an edit.
    var inTurns: [[Element]] {
        let count = WriteLines.changesPerTurn / WriteRequest.changesPerEdit
        return stride(from: 0, to: self.count, by: count).map {
            Array(self[$0..<Swift.min($0 + count, self.count)])
        }
    }
}
