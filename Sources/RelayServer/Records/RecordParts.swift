import RelayModel
import Storage

/// The independent operations of one request, which are applied in parts.
///
/// However many parts there are, together they may change and answer only what one request may.
/// What was applied is answered even if a later part is refused.
struct RecordParts {
    private let edits: [RecordEdit]
    private var allowance = RecordEditAllowance(.atOnce)
    /// The outcomes so far, in the order of the operations.
    private(set) var outcomes: [RecordEditOutcome] = []
    /// The place at which the next operation continues, if it is an unfinished deletion.
    private(set) var place: CascadePlace?

    init(_ edits: [RecordEdit]) {
        self.edits = edits
    }

    /// Whether any part has been applied.
    var isBegun: Bool { !outcomes.isEmpty || place != nil }

    /// Returns the next operations, at most `most`; `nil` after the last.
    ///
    /// An unfinished operation continues alone.
    mutating func next(most: Int) -> [RecordEdit]? {
        if allowance.appended <= 0, place == nil {
            end(.tooMuchAtOnce(bytes: RecordEditAllowance.maximumBytes))
        }
        let rest = edits[outcomes.count...]
        return rest.isEmpty ? nil : Array(rest.prefix(place == nil ? max(1, most) : 1))
    }

    /// Notes the outcomes of the latest part, and the place of an unfinished deletion.
    mutating func note(_ applied: RecordEditsApplied) {
        let isUnfinished = applied.outcomes.contains(where: \.isUnfinished)
        note(Array(applied.outcomes.prefix { !$0.isUnfinished }))
        place = isUnfinished ? applied.place : nil
    }

    /// Notes the outcomes of the latest part.
    mutating func note(_ part: [RecordEditOutcome]) {
        let isAll = part.count >= edits.count
        for outcome in part {
            // If all operations were applied in one step, that step has counted them already.
            guard !isAll else {
                outcomes.append(outcome)
                continue
            }
            outcomes.append(outcome.told(within: &allowance.told))
            // The change contains the record before as well.
            if case .saved(let record) = outcome { allowance.appended -= 2 * record.toldBytes }
        }
    }

    /// Refuses the remaining operations.
    mutating func end(_ refusal: RecordRefusal) {
        if place != nil, case .bounded(let bound, let reason) = refusal {
            let rest =
                "some of the records that refer to it are already deleted; send the same deletion "
                + "again to continue"
            outcomes.append(.refused(.bounded(bound, reason: "\(reason); \(rest)")))
        }
        place = nil
        while outcomes.count < edits.count { outcomes.append(.refused(refusal)) }
    }
}
