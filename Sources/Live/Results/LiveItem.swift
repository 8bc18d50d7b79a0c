import RelayModel

/// What one change did to a result.
struct LiveItem: Sendable {
    /// What a client does.
    enum Operation: String, Sendable {
        case added, changed, removed
    }

    /// Why.
    enum Reason: String, Sendable {
        /// It came into being.
        case created
        /// It existed, and was no member.
        case entered
        /// It slid into, or was pushed out of, what is shown.
        case windowed
        /// The user may read it now.
        case readable
        /// It is a row of a snapshot of the database.
        case loaded
        /// It ceased to be.
        case deleted
        /// It is no member any more.
        case left
        /// The user may not read it any more.
        case unreadable
        /// The relay does not keep it any longer, because nothing changed it for long.
        case forgotten
    }

    var operation: Operation
    var reason: Reason?
    var record: LiveRecord
    /// The neighbour before, in the result after the change: in ordered results.
    ///
    /// It is the record and not its name, because an item is copied often and told once.
    var neighbour: LiveRecord?
    /// Whether its order value changed.
    var moved = false
    /// The record before.
    var before: LiveRecord?
    /// Whether a changed record shows the same as before, and only its readers are others: who
    /// could read it, and can, is told nothing.
    var isSilent = false

    /// The name of the neighbour before.
    var previous: RecordID? { neighbour?.id }

    /// What somebody is told who may read the record only since.
    var whereEntered: LiveItem { told(.added, .readable) }

    /// What somebody is told who may not read it any more.
    var whereLeft: LiveItem { told(.removed, .unreadable) }

    private func told(_ operation: Operation, _ reason: Reason) -> LiveItem {
        var item = self
        (item.operation, item.reason, item.before) = (operation, reason, nil)
        item.isSilent = false
        return item
    }
}

/// Why a record comes into a result by a change, or goes out of it.
struct LiveFate: Sendable {
    let coming: LiveItem.Reason
    let going: LiveItem.Reason

    /// It came to fit, or fits no more.
    static let entered = LiveFate(coming: .entered, going: .left)

    /// A record comes for one reason, and goes for another.
    init(coming: LiveItem.Reason, going: LiveItem.Reason) {
        (self.coming, self.going) = (coming, going)
    }

    /// What becomes of a record by this change after those before it, which are told as one.
    ///
    /// What came into being by one of them did so, however often it was changed since.
    func followed(by fate: LiveFate) -> LiveFate {
        LiveFate(coming: isNew && !fate.isNew ? coming : fate.coming, going: fate.going)
    }

    private var isNew: Bool { coming == .created || coming == .loaded }
}

/// Why one change has its record come into results, or go out of them.
///
/// Nearly all results are nobody's own, and have one answer; and none of them looks at the change
/// itself, which takes longer to copy than all else that is done for one.
struct LiveFates {
    private let operation: ChangeOperation
    private let isSnapshot: Bool
    private let readersBefore: [String]?
    private let readersAfter: [String]?
    private let ofAll: LiveFate

    /// What a change does to the record of `step`.
    init(of change: RecordChange, _ step: RecordStep) {
        operation = change.operation
        isSnapshot = change.isSnapshot
        let named = change.readersBefore ?? change.readers
        readersBefore = step.earlier == nil ? named : step.earlier?.readers
        readersAfter = step.later?.readers
        ofAll = Self.fate(
            by: change.operation, isSnapshot: change.isSnapshot, couldRead: true, canRead: true)
    }

    /// What it does as `reader` sees it; everybody, if it is nobody's own result.
    func fate(for reader: LiveReader?) -> LiveFate {
        guard let reader else { return ofAll }
        return Self.fate(
            by: operation, isSnapshot: isSnapshot, couldRead: reader.isAmong(readersBefore),
            canRead: reader.isAmong(readersAfter))
    }

    private static func fate(
        by operation: ChangeOperation, isSnapshot: Bool, couldRead: Bool, canRead: Bool
    ) -> LiveFate {
        switch operation {
        case .create: LiveFate(coming: isSnapshot ? .loaded : .created, going: going(canRead))
        case .update: LiveFate(coming: coming(couldRead), going: going(canRead))
        case .delete:
            LiveFate(coming: coming(couldRead), going: isSnapshot ? .forgotten : .deleted)
        }
    }

    private static func coming(_ couldRead: Bool) -> LiveItem.Reason {
        couldRead ? .entered : .readable
    }

    private static func going(_ canRead: Bool) -> LiveItem.Reason {
        canRead ? .left : .unreadable
    }
}
