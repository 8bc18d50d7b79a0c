import Matching
import PredicateLanguage
package import RelayModel
package import Storage

/// Judges changes of the past by a subscription that was not there, as if it had been.
///
/// The walk's own code judges, on a state that has nothing but the subscription. Nothing is kept or
/// sent. Pure, but for the steps that a condition may take.
package struct Rehearsal {
    /// What came of one change.
    package struct Verdict: Sendable {
        /// Whether it would have fired the subscription.
        package var fires = false
        /// Whether it would have fired the subscription as it was saved.
        package var firedFormerly = false
        /// The pushes to the owner's devices, others' silent ones aside.
        package var pushes = 0
        /// What it did to its record.
        package var operation: ChangeOperation
    }

    /// The subscription that is rehearsed.
    package let subscription: Subscription
    /// The devices of its owner.
    private let devices: [DeviceVersion]
    private var state: ShardState
    /// The subscription as it was saved, if the two are compared.
    private var former: ShardState?

    /// Fires by every change that the owner may be told of.
    private static let witness: UInt64 = 1
    private static let subject: UInt64 = 2

    /// Begins a rehearsal of `subscription`, in place of `former` if that is given.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if a condition cannot be read.
    package init(
        of subscription: Subscription, insteadOf former: Subscription? = nil,
        to devices: [PastDevice], mostSteps: Int = Limits.maximumStepsPerChange
    ) throws {
        self.subscription = subscription
        self.devices = devices.map { $0.version(in: subscription.container) }
        state = ShardState(indexSeed: 0, mostSteps: mostSteps)
        let witness = Self.witness(of: subscription, former)
        try state.insert(
            SubscriptionVersion(
                serial: Self.witness, subscription: witness, activation: .start))
        try state.insert(
            SubscriptionVersion(
                serial: Self.subject, subscription: subscription, activation: .start))
        guard let former else { return }
        var state = ShardState(indexSeed: 0, mostSteps: mostSteps)
        try state.insert(
            SubscriptionVersion(serial: Self.subject, subscription: former, activation: .start))
        self.former = state
    }

    /// Which changes are looked at: those of the record type, in the database, that the owner may
    /// be told of, whatever they did.
    private static func witness(
        of subscription: Subscription, _ former: Subscription?
    ) -> Subscription {
        Subscription(
            id: subscription.id, container: subscription.container,
            database: subscription.database, owner: subscription.owner,
            scope: .database(recordType: recordType(of: subscription, former)), firesOn: .all)
    }

    private static func recordType(
        of subscription: Subscription, _ former: Subscription?
    ) -> RecordType? {
        let type = subscription.recordType
        return former == nil || former?.recordType == type ? type : nil
    }

    /// The record type of every change that can matter; `nil` means any.
    package static func recordTypeRead(
        by subscription: Subscription, insteadOf former: Subscription?
    ) -> RecordType? { recordType(of: subscription, former) }

    /// Evaluations of the condition that had an error, so far.
    package var errors: Int {
        let errors = state.index(of: subscription.container)?.errors[Self.subject] ?? 0
        return Int(clamping: errors)
    }

    /// Judges one change; `nil` if there is none that the owner may be told of.
    ///
    /// - Throws: `DearChange` if a condition takes more steps than one change may, and what reading
    ///   the change throws.
    package mutating func judge(_ logged: LoggedPastChange) throws -> Verdict? {
        let container = subscription.container
        let found = try state.serials(
            firedBy: logged.change, appendedAt: logged.appendedAt, isStale: false, in: container,
            mayNameReaders: logged.mayNameReaders)
        guard let found, found.serials.contains(Self.witness) else { return nil }
        var verdict = Verdict(operation: try Self.operation(of: logged.change, found.read))
        verdict.fires = found.serials.contains(Self.subject)
        if verdict.fires {
            verdict.pushes = try pushes(logged, found.read)
        }
        if former != nil {
            let told = try former?.serials(
                firedBy: found.read.map(LoggedChange.read) ?? logged.change,
                appendedAt: logged.appendedAt, isStale: false, in: container,
                mayNameReaders: logged.mayNameReaders)
            verdict.firedFormerly = told?.serials.isEmpty == false
        }
        return verdict
    }

    /// Whether the owner may be told of a change that could not be judged.
    package func mayTell(of change: RecordChange) -> Bool {
        change.database == subscription.database && change.mayTell(subscription)
            && (change.database == .public || change.owner == subscription.owner)
    }

    private func pushes(_ logged: LoggedPastChange, _ read: RecordChange?) throws -> Int {
        guard logged.mayNameOrigin, !devices.isEmpty, subscription.suppress != .none else {
            return devices.count
        }
        let change = try read ?? logged.change.change()
        return DeviceExpansion.devices(among: devices, for: subscription, of: change).count
    }

    private static let beginnings = ChangeOperation.allCases.map {
        ($0, RecordChange.storedBeginning(of: $0))
    }

    private static func operation(
        of change: LoggedChange, _ read: RecordChange?
    ) throws -> ChangeOperation {
        if let read { return read.operation }
        if case .stored(let text) = change,
            let known = beginnings.first(where: { text.utf8.starts(with: $0.1) })
        {
            return known.0
        }
        return try change.change().operation
    }
}
