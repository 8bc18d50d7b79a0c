import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// Predicts from the log alone which changes are set aside because a condition takes too many
/// steps.
///
/// These are the changes of a heavy record while a dear condition is active.
struct DearModel {
    /// The steps that one change may take in the simulation.
    ///
    /// A dear condition takes more steps for a heavy record. All other conditions together take
    /// fewer for any record.
    static let mostSteps = 100_000
    static let condition = "SUBQUERY(a, $x, SUBQUERY(a, $y, $x == $y).@count > 0).@count > 0"
    static let heavyField: FieldValue = .list((0..<100).map { .integer($0) })

    /// The positions of the changes that must be set aside.
    private(set) var setAside: Set<LogPosition> = []
    private var active: [ContainerKey: Set<UInt64>] = [:]
    /// How many changes were set aside while this subscription had the only dear condition, by
    /// serial.
    private var alone: [UInt64: Int] = [:]
    private var owners: [UInt64: SubscriptionOwner] = [:]
    private var why: [LogPosition: String] = [:]
    private var read = LogPosition.start

    /// Reads the log up to `position`.
    mutating func read(_ store: RelayStore, upTo position: LogPosition) async throws {
        while read < position {
            let entries = try await store.entries(after: read, limit: 100)
            for entry in entries where entry.position <= position { take(entry) }
            guard let last = entries.last else { return }
            read = min(last.position, position)
        }
    }

    private mutating func take(_ entry: LogEntry) {
        var here = active[entry.container] ?? []
        switch entry.body {
        case .subscriptionSaved(let version, let replaced):
            if let replaced { here.remove(replaced) }
            let subscription = version.subscription
            if subscription.isDear {
                here.insert(version.serial)
                owners[version.serial] = SubscriptionOwner(
                    container: entry.container, database: subscription.database,
                    user: subscription.owner)
            }
        case .subscriptionDeleted(let serial): here.remove(serial)
        case .change(let change, _, let isStale):
            guard !isStale, change.isHeavy, !here.isEmpty else { break }
            setAside.insert(entry.position)
            why[entry.position] =
                "\(change.operation) of \(change.recordID.recordName), by \(here.sorted())"
            if here.count == 1, let only = here.first { alone[only, default: 0] += 1 }
        case .deviceSaved, .devicesEnded: break
        }
        active[entry.container] = here
    }

    /// Returns how the store differs from the prediction once everything is settled, or `nil`.
    func problem(in store: RelayStore) async throws -> String? {
        let stored = try await store.positionsSetAside(after: .start)
        if let wrong = stored.symmetricDifference(setAside).min() {
            return stored.contains(wrong)
                ? "\(wrong) was set aside, and nothing dear was asked of it"
                : "\(wrong) was not set aside (\(why[wrong] ?? "")), others at "
                    + setAside.map { "\($0)" }.sorted().joined(separator: " ")
        }
        let live = active.values.reduce(into: Set<UInt64>()) { $0.formUnion($1) }
        let strikes = RelayStore.strikesOfSubscription
        if let spared = live.first(where: { alone[$0] ?? 0 >= strikes }) {
            return "\(spared) fires on, though changes were set aside for it alone"
        }
        for owner in Set(owners.values) {
            for disabled in try await store.disabledSubscriptions(of: owner) {
                let serial = disabled.version.serial
                if owners[serial] == nil { return "\(serial) was disabled, and is not dear" }
                if live.contains(serial) { return "\(serial) was disabled, and no entry says so" }
                guard setAside.contains(where: { disabled.reason.hasSuffix(" \($0)") }) else {
                    return "\(serial) was disabled, and its reason names no change: "
                        + disabled.reason
                }
            }
        }
        return nil
    }
}

extension Subscription {
    var isDear: Bool {
        guard case .query(let query, _) = scope else { return false }
        return query.canonical == DearModel.condition
    }
}

extension RecordChange {
    var isHeavy: Bool { (after ?? before)?.fields["a"] != nil }
}
