import RelayModel
import Storage

/// The operations of one request, which stand for themselves, as they go in part by part.
///
/// In however many parts they come, they change and are answered what one request may, and what
/// was applied is told though a later part is refused.
struct RecordParts {
    private let edits: [RecordEdit]
    private var allowance = RecordEditAllowance(.atOnce)
    /// What became of them so far, in their order.
    private(set) var outcomes: [RecordEditOutcome] = []
    /// Where the first of the others goes on, if it is a deletion that is unfinished.
    private(set) var place: CascadePlace?

    init(_ edits: [RecordEdit]) {
        self.edits = edits
    }

    /// Whether a part has gone in.
    var isBegun: Bool { !outcomes.isEmpty || place != nil }

    /// The operations that go in next, `most` at the most; `nil` after the last.
    ///
    /// One that is unfinished goes on alone.
    mutating func next(most: Int) -> [RecordEdit]? {
        if allowance.appended <= 0, place == nil {
            end(.tooMuchAtOnce(bytes: RecordEditAllowance.maximumBytes))
        }
        let rest = edits[outcomes.count...]
        return rest.isEmpty ? nil : Array(rest.prefix(place == nil ? max(1, most) : 1))
    }

    /// Notes what became of the operations that went in last, and of what goes along.
    mutating func note(_ applied: RecordEditsApplied) {
        let isUnfinished = applied.outcomes.contains(where: \.isUnfinished)
        note(Array(applied.outcomes.prefix { !$0.isUnfinished }))
        place = isUnfinished ? applied.place : nil
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
        if place != nil, case .bounded(let bound, let reason) = refusal {
            let rest = "of what refers to it some is deleted, and the same deletion goes on with it"
            outcomes.append(.refused(.bounded(bound, reason: "\(reason); \(rest)")))
        }
        place = nil
        while outcomes.count < edits.count { outcomes.append(.refused(refusal)) }
    }
}
