import RelayModel

/// The effect of one change on a result.
struct LiveItem: Sendable {
    /// What a client does with the record.
    enum Operation: String, Sendable {
        case added, changed, removed
    }

    /// The reason for the operation.
    enum Reason: String, Sendable {
        /// The record was created.
        case created
        /// The record existed already, and came to fit.
        case entered
        /// The record moved into or out of the shown window.
        case windowed
        /// The user may read the record now.
        case readable
        /// The record is a row of a snapshot of the database.
        case loaded
        /// The record was deleted.
        case deleted
        /// The record does not fit any more.
        case left
        /// The user may not read the record any more.
        case unreadable
        /// The relay has dropped the record because it was not changed for a long time.
        case forgotten
    }

    var operation: Operation
    var reason: Reason?
    var record: LiveRecord
    /// The preceding record in the result after the change; for ordered results.
    ///
    /// It is the record and not its name, because an item is copied often and written once.
    var neighbour: LiveRecord?
    /// Whether the record's sort value changed.
    var moved = false
    /// The record before the change.
    var before: LiveRecord?
    /// The users who could read the record on the other side of the change that brought it into
    /// the result or took it out; `nil` if they are those who may read this item's record.
    var others: LiveReaders?
    /// Whether only the record's readers changed and not what is shown of it.
    ///
    /// Clients whose user could read the record before and still can are sent nothing.
    var isSilent = false

    /// The ID of the preceding record.
    var previous: RecordID? { neighbour?.id }

    /// The users who could read the record before the change and those who may read it after it;
    /// `nil` means everybody.
    var readers: (before: [String]?, after: [String]?) {
        let own = record.readers
        switch operation {
        case .added: return (others == nil ? own : others?.names, own)
        case .changed: return (before == nil ? own : before?.readers, own)
        case .removed: return (own, others == nil ? own : others?.names)
        }
    }

    /// The item for users who can read the record only since the change.
    var whereEntered: LiveItem { told(.added, .readable) }

    /// The item for users who can no longer read the record.
    var whereLeft: LiveItem { told(.removed, .unreadable) }

    private func told(_ operation: Operation, _ reason: Reason) -> LiveItem {
        var item = self
        (item.operation, item.reason, item.before) = (operation, reason, nil)
        item.isSilent = false
        return item
    }
}

/// The users who may read a record.
struct LiveReaders: Sendable {
    /// Their names; `nil` means everybody.
    let names: [String]?
}

/// The reasons that are given if a change brings a record into a result or takes it out.
struct LiveFate: Sendable {
    let coming: LiveItem.Reason
    let going: LiveItem.Reason
    /// For a result that readers share: the users who could read the record before the change, if
    /// the change altered that.
    var readersBefore: LiveReaders?
    /// For a result that readers share: the users who may read the record after the change, if the
    /// change altered that.
    var readersAfter: LiveReaders?

    /// The record came to fit, or no longer fits.
    static let entered = LiveFate(coming: .entered, going: .left)

    /// Creates a fate from its two reasons.
    init(coming: LiveItem.Reason, going: LiveItem.Reason) {
        (self.coming, self.going) = (coming, going)
    }

    /// Returns this fate for a result that readers share, if the change altered who they are.
    ///
    /// Whether the record fitted on the side of the change that a user cannot read would reveal
    /// what it was there. So such users are given another reason.
    func shared(from before: [String]?, to after: [String]?) -> LiveFate {
        guard !RecordChange.isSame(before, as: after) else { return self }
        var fate = self
        if coming == .entered { fate.readersBefore = LiveReaders(names: before) }
        if going == .left { fate.readersAfter = LiveReaders(names: after) }
        return fate
    }

    /// Returns the fate of a record whose two changes are sent as one.
    ///
    /// A record that the first change created counts as created, however often it was changed
    /// later.
    func followed(by fate: LiveFate) -> LiveFate {
        LiveFate(coming: isNew && !fate.isNew ? coming : fate.coming, going: fate.going)
    }

    private var isNew: Bool { coming == .created || coming == .loaded }
}

/// Computes the fate of one change's record for each reader.
///
/// Nearly all results are shared by all readers, and have the same answer. This type keeps only
/// what it needs, because copying the change takes longer than everything else done for one result.
struct LiveFates {
    private let operation: ChangeOperation
    private let isSnapshot: Bool
    private let readersBefore: [String]?
    private let readersAfter: [String]?
    private let ofAll: LiveFate

    /// Creates the fates of a change to the record of `step`.
    init(of change: RecordChange, _ step: RecordStep) {
        operation = change.operation
        isSnapshot = change.isSnapshot
        let named = change.readersBefore ?? change.readers
        readersBefore = step.earlier == nil ? named : step.earlier?.readers
        readersAfter = step.later?.readers
        let fate = Self.fate(
            by: change.operation, isSnapshot: change.isSnapshot, couldRead: true, canRead: true)
        ofAll = fate.shared(from: readersBefore, to: readersAfter)
    }

    /// Returns the fate as `reader` sees it; `nil` stands for a result that all readers share.
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
