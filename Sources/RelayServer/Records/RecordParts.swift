import Storage

/// The operations of one request, which stand for themselves, as they go in part by part.
///
/// In however many parts they come, they change and are answered what one request may, and what
/// was applied is told though a later part is refused.
struct RecordParts {
    private let edits: [RecordEdit]
    private var allowance = RecordEditAllowance()
    /// What became of them so far, in their order.
    private(set) var outcomes: [RecordEditOutcome] = []

    init(_ edits: [RecordEdit]) {
        self.edits = edits
    }

    /// Whether a part has gone in.
    var isBegun: Bool { !outcomes.isEmpty }

    /// The operations that go in next, `most` at the most; `nil` after the last.
    mutating func next(most: Int) -> [RecordEdit]? {
        if allowance.appended <= 0 {
            end(.tooMuchAtOnce(bytes: RecordEditAllowance.maximumBytes))
        }
        let rest = edits[outcomes.count...]
        return rest.isEmpty ? nil : Array(rest.prefix(max(1, most)))
    }

    /// Notes what became of the operations that went in last.
    mutating func note(_ part: [RecordEditOutcome]) {
        let isAll = part.count >= edits.count
        for outcome in part {
            // One request's own step has counted what goes in at once.
            guard !isAll else {
                outcomes.append(outcome)
                continue
            }
            outcomes.append(outcome.told(within: &allowance.told))
            // A change holds the record as it was, too.
            if case .saved(let record) = outcome { allowance.appended -= 2 * record.toldBytes }
        }
    }

    /// Refuses what has not gone in.
    mutating func end(_ refusal: RecordRefusal) {
        while outcomes.count < edits.count { outcomes.append(.refused(refusal)) }
    }
}
