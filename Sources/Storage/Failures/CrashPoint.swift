import FoundationEssentials
import Glibc
import Synchronization

/// A boundary between two stages of the walk, at which a campaign kills the process.
///
/// `BELFRY_CRASH_AT=settled:12` makes `belfry serve` kill itself with SIGKILL when ``settled`` is
/// reached for the 12th time. Unarmed, reaching a point costs one load.
package enum CrashPoint: String, Sendable, CaseIterable {
    /// A transaction is filled and not yet committed.
    case commit
    /// A transaction is durable, and no caller has an answer yet.
    case committed
    /// A change is about to be matched.
    case match
    /// Once subscriptions are claimed for a change, and nothing is sent yet.
    case claimed
    /// Deliveries are composed and not yet handed over.
    case handOver
    /// Deliveries of a range are composed and not yet handed over.
    case range
    /// Deliveries were given to the gateway.
    case sent
    /// Answers are settled and not yet recorded.
    case settle
    /// A step of settling is durable.
    case settled
    /// The write-ahead log is about to be started anew.
    case checkpoint
    /// Something is about to be pruned.
    case prune

    private struct Plan: Sendable {
        let point: CrashPoint
        let count: Int
    }

    private static let plan = Mutex<Plan?>(nil)
    private static let isArmed = Atomic(false)
    private static let reached = Atomic<Int>(0)

    /// Plans the kill that `text` describes, such as `settled:12`.
    ///
    /// - Throws: ``UnknownCrashPoint`` for another text: a campaign would otherwise wait for a kill
    ///   that never comes, and find that it did no harm.
    package static func arm(_ text: String) throws(UnknownCrashPoint) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let point = CrashPoint(rawValue: String(parts[0])),
            let count = Int(parts[1]), count > 0
        else { throw UnknownCrashPoint() }
        plan.withLock { $0 = Plan(point: point, count: count) }
        isArmed.store(true, ordering: .releasing)
    }

    /// Kills the process if a kill is planned at this point.
    package func reach() {
        guard Self.isArmed.load(ordering: .acquiring),
            let plan = Self.plan.withLock({ $0 }), plan.point == self
        else { return }
        let count = Self.reached.wrappingAdd(1, ordering: .relaxed).newValue
        if count == plan.count { kill(getpid(), SIGKILL) }
    }
}

/// The error for a text that names no crash point.
package struct UnknownCrashPoint: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the variable must say.
    package var description: String {
        let points = CrashPoint.allCases.map(\.rawValue).joined(separator: ", ")
        return "BELFRY_CRASH_AT: must be POINT:NUMBER, such as settled:12, with a number of 1 or "
            + "more and one of the points \(points)"
    }
}
