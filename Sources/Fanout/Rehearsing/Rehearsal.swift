import Matching
import PredicateLanguage
package import RelayModel
package import Storage

/// Judges past changes by a subscription that did not exist then, as if it had.
///
/// The walk's own code judges, on a state that contains nothing but the subscription. Nothing is
/// saved or sent. Pure, except for the steps that a condition may take.
package struct Rehearsal {
    /// The result for one change.
    package struct Verdict: Sendable {
        /// Whether the change would have fired the subscription.
        package var fires = false
        /// Whether the change would have fired the subscription as it was saved before.
        package var firedFormerly = false
        /// The number of pushes to the owner's devices, as if no other subscription pushed
        /// silently.
        package var pushes = 0
        /// The serials of the devices that get no push because they made the change.
        package var leftOut: [UInt64] = []
        /// The operation of the change.
        package var operation: ChangeOperation
    }

    /// The subscription that is rehearsed.
    package let subscription: Subscription
    /// The devices of the owner.
    private let devices: [DeviceVersion]
    /// A state that fires for every change that the owner may be told of.
    ///
    /// It is asked first. So the condition is never judged on a hidden change, and reveals nothing
    /// of it by errors, steps or time.
    private var witness: ShardState
    private var subject: ShardState
    /// The subscription as it was saved before, if the two are compared.
    private let former: Subscription?
    private var formerState: ShardState?

    private static let serial: UInt64 = 1

    /// Creates a rehearsal of `subscription`, in place of `former` if that is given.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if a condition cannot be read.
    package init(
        of subscription: Subscription, insteadOf former: Subscription? = nil,
        to devices: [PastDevice], mostSteps: Int = Limits.maximumStepsPerChange
    ) throws {
        self.subscription = subscription
        self.devices = devices.map { $0.version(in: subscription.container) }
        witness = try Self.state(of: Self.witness(of: subscription, former), mostSteps)
        subject = try Self.state(of: subscription, mostSteps)
        self.former = former
        formerState = try former.map { try Self.state(of: $0, mostSteps) }
    }

    private static func state(
        of subscription: Subscription, _ mostSteps: Int
    ) throws -> ShardState {
        var state = ShardState(indexSeed: 0, mostSteps: mostSteps)
        try state.insert(
            SubscriptionVersion(
                serial: serial, subscription: subscription, activation: .start))
        return state
    }

    /// Returns a subscription that selects the changes to look at: all operations on the record
    /// type in the database that the owner may be told of.
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

    /// Returns the record type of every change that can matter.
    ///
    /// `nil` means any.
    package static func recordTypeRead(
        by subscription: Subscription, insteadOf former: Subscription?
    ) -> RecordType? { recordType(of: subscription, former) }

    /// The number of evaluations of the condition that had an error so far.
    package var errors: Int {
        let errors = subject.index(of: subscription.container)?.errors[Self.serial] ?? 0
        return Int(clamping: errors)
    }

    /// Judges one change.
    ///
    /// Returns `nil` if the owner may not be told of it.
    ///
    /// - Throws: `DearChange` if a condition takes more steps than one change may, and what reading
    ///   the change throws.
    package mutating func judge(_ logged: LoggedPastChange) throws -> Verdict? {
        guard let seen = try witness.fires(logged, subscription), seen.fires else { return nil }
        var logged = logged
        if let read = seen.read { logged.change = .read(read) }
        var verdict = Verdict(operation: try Self.operation(of: logged.change))
        verdict.fires = try subject.fires(logged, subscription)?.fires ?? false
        if verdict.fires {
            verdict.leftOut = try leftOut(logged)
            verdict.pushes = devices.count - verdict.leftOut.count
        }
        if let former {
            verdict.firedFormerly = try formerState?.fires(logged, former)?.fires ?? false
        }
        return verdict
    }

    /// Returns whether the owner may be told of a change.
    package func mayTell(of change: RecordChange) -> Bool {
        change.database == subscription.database && change.mayTell(subscription)
            && (change.database == .public || change.owner == subscription.owner)
    }

    private func leftOut(_ logged: LoggedPastChange) throws -> [UInt64] {
        guard logged.mayNameOrigin, !devices.isEmpty, subscription.suppress != .none else {
            return []
        }
        let change = try logged.change.change()
        let told = DeviceExpansion.devices(among: devices, for: subscription, of: change)
        guard told.count < devices.count else { return [] }
        let serials = Set(told.map(\.serial))
        return devices.map(\.serial).filter { !serials.contains($0) }
    }

    private static let beginnings = ChangeOperation.allCases.map {
        ($0, RecordChange.storedBeginning(of: $0))
    }

    private static func operation(of change: LoggedChange) throws -> ChangeOperation {
        if case .stored(let text) = change,
            let known = beginnings.first(where: { text.utf8.starts(with: $0.1) })
        {
            return known.0
        }
        return try change.change().operation
    }
}

private extension ShardState {
    /// Returns whether a change fires the only subscription of the state.
    ///
    /// A condition about a record that the owner might not read before the change is not even
    /// judged.
    mutating func fires(
        _ logged: LoggedPastChange, _ subscription: Subscription
    ) throws -> (fires: Bool, read: RecordChange?)? {
        if case .read(let change) = logged.change, !change.mayTell(subscription) {
            return (false, change)
        }
        let found = try serials(
            firedBy: logged.change, appendedAt: logged.appendedAt, isStale: false,
            in: subscription.container, mayNameReaders: logged.mayNameReaders)
        return found.map { (!$0.serials.isEmpty, $0.read) }
    }
}
