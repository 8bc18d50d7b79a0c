import Foundation
import Synchronization

/// A boundary between two stages of the walk, at which a campaign kills the process.
///
/// `BELFRY_CRASH_AT=settled:12` kills it with SIGKILL when ``settled`` is reached for the 12th time.
/// Without the variable reaching a point costs a comparison.
package enum CrashPoint: String, Sendable, CaseIterable {
    /// A transaction is filled and not yet committed.
    case commit
    /// A transaction is durable, and nobody was answered.
    case committed
    /// A change is about to be matched.
    case match
    /// Once subscriptions are claimed for a change, and nothing is sent.
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

    private static let plan: Plan? = {
        let text = ProcessInfo.processInfo.environment["BELFRY_CRASH_AT"] ?? ""
        let parts = text.split(separator: ":", maxSplits: 1)
        guard let point = parts.first.flatMap({ CrashPoint(rawValue: String($0)) }) else {
            return nil
        }
        return Plan(point: point, count: parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
    }()

    private static let reached = Atomic<Int>(0)

    /// Kills the process if that is planned here.
    package func reach() {
        guard let plan = Self.plan, plan.point == self else { return }
        let count = Self.reached.wrappingAdd(1, ordering: .relaxed).newValue
        if count == plan.count { kill(getpid(), SIGKILL) }
    }
}
