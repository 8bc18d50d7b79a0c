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
    var previous: RecordID?
    /// Whether its order value changed.
    var moved = false
    /// The record before.
    var before: LiveRecord?
    /// Whether a changed record shows the same as before, and only its readers are others: who
    /// could read it, and can, is told nothing.
    var isSilent = false

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

    /// What a change does to a record as `reader` sees it; everybody, if it is nobody's own result.
    init(of change: RecordChange, _ step: RecordStep, for reader: LiveReader?) {
        let named = change.readersBefore ?? change.readers
        let readersBefore = step.earlier == nil ? named : step.earlier?.readers
        let couldRead = reader?.isAmong(readersBefore) ?? true
        let canRead = reader?.isAmong(step.later?.readers) ?? true
        coming =
            switch change.operation {
            case .create where change.isSnapshot: .loaded
            case .create: .created
            case .update, .delete: couldRead ? .entered : .readable
            }
        going =
            switch change.operation {
            case .delete where change.isSnapshot: .forgotten
            case .delete: .deleted
            case .create, .update: canRead ? .left : .unreadable
            }
    }

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
