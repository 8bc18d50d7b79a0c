import RelayModel
import Storage

extension RelayStore {
    /// Has the writer run the operations of one request, and returns the outcomes when everything
    /// is durable.
    ///
    /// Independent operations are sent to the writer in parts, each of which is one turn. Otherwise
    /// a request with two hundred operations would keep the writer from other requests until all
    /// are done. Where others write too and the container's edits appended much lately, each edit
    /// is a part. The parts stay in order. If a part fails as a whole, the earlier parts are kept
    /// and the caller gets the error, as if the relay had stopped between them.
    ///
    /// `body` runs a part, and may run more than once. The value that it leaves in `start` is
    /// passed to the next part. `along` is the additional cost of the first part, in edits, and
    /// `besides` that of an edit, in changes.
    func write<Edit: Sendable, Rest: Sendable, Outcome: Sendable>(
        _ edits: [Edit], _ atomicity: EditAtomicity, _ lane: WriteRequest.Lane = .own,
        of container: ContainerKey, along: Int = 0,
        besides: @Sendable (Edit) -> Int = { _ in 0 }, from start: Rest,
        _ body: @escaping @Sendable ([Edit], inout Rest, inout OpenCommit) throws -> [Outcome]
    ) async throws -> [Outcome] {
        let isLarge = largeWrites.contains(container)
        let isAlone = !engine.isContended(by: container) || !isLarge
        let most = isAlone ? Self.editsPerTurn : 1
        let parts = atomicity == .independent ? edits.parts(of: most) : [edits]
        let large = settings.commitBytesBesideOthers / Self.editsPerTurn
        return try await withCheckedThrowingContinuation { continuation in
            let write = PartedWrite<Rest, Outcome>(parts: parts.count, start) {
                continuation.resume(with: $0)
            }
            let requests = parts.enumerated().map { index, part in
                let count = part.count + (index == 0 ? along : 0)
                return WriteRequest(
                    lane: lane, container: container,
                    changes: count * WriteRequest.changesPerEdit
                        + part.reduce(0) { $0 + besides($1) },
                    bytes: 0, isLarge: isLarge,
                    answersCaller: index == parts.count - 1,
                    perform: { [largeWrites] commit in
                        var rest = write.rest(before: index)
                        let beginning = commit.bookmark
                        let outcomes = try body(part, &rest, &commit)
                        largeWrites.note(
                            container,
                            isLarge: commit.bytes(since: beginning) > large * part.count)
                        write.note(outcomes, leaving: rest, of: index)
                        return { write.end(nil) }
                    },
                    fail: { [engine] in write.end(engine.translated($0)) })
            }
            if let refusal = engine.submit(requests) { continuation.resume(throwing: refusal) }
        }
    }

    /// The number of edits that fill one turn at the writer.
    private static let editsPerTurn = WriteLines.changesPerTurn / WriteRequest.changesPerEdit
}

private extension Array {
    /// Returns the elements in groups of `most`, the last of which may be smaller.
    func parts(of most: Int) -> [[Element]] {
        stride(from: 0, to: count, by: most).map {
            Array(self[$0..<Swift.min($0 + most, count)])
        }
    }
}
