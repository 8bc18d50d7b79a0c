import Fanout
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Reads the health of subscriptions, for clients and operators.
struct HealthReading: Sendable {
    /// What it reads.
    typealias Known = SubscriptionRegistry & PastRegistry

    /// The number of last errors that are explained in one answer, because each takes a read of the
    /// log and an evaluation.
    private static let mostFaults = 20

    let registry: any Known
    /// How long the log is kept, for answers about what is gone.
    let retention: Retention

    /// Returns the health of versions of a container's subscriptions, by serial.
    func health(
        of versions: [SubscriptionVersion], in container: ContainerKey
    ) async throws -> [UInt64: JSONObject] {
        let found = try await registry.health(of: Set(versions.map(\.serial)))
        let faults = try await faults(of: versions, found, in: container)
        var answers: [UInt64: JSONObject] = [:]
        for serial in versions.map(\.serial) {
            answers[serial] = (found[serial] ?? SubscriptionHealth()).json(fault: faults[serial])
        }
        return answers
    }

    /// Returns the explanations of the last errors.
    private func faults(
        of versions: [SubscriptionVersion], _ found: [UInt64: SubscriptionHealth],
        in container: ContainerKey
    ) async throws -> [UInt64: ToldFault] {
        let erring = versions.compactMap { version in
            found[version.serial]?.lastError.map { (version, $0.position) }
        }.sorted { $0.1 > $1.1 }.prefix(Self.mostFaults)
        var faults: [UInt64: ToldFault] = [:]
        for (version, position) in erring {
            try Task.checkCancellation()
            faults[version.serial] = try await fault(of: version, at: position, in: container)
        }
        return faults
    }

    private func fault(
        of version: SubscriptionVersion, at position: LogPosition, in container: ContainerKey
    ) async throws -> ToldFault {
        guard let past = try await registry.pastChange(at: position, of: container),
            let change = past.change
        else { return .gone(retention.logIsKept()) }
        let fault = EvaluationFault(
            of: version.subscription, on: change, appendedAt: past.appendedAt
        ) { predicate, fields, moment in
            try? PreparedPredicate(checked: predicate).trace(onValue: .map(fields), now: moment)
        }
        return fault.map(ToldFault.found) ?? .gone("")
    }
}

/// The explanation of an evaluation error.
enum ToldFault: Sendable {
    /// The error was reproduced.
    case found(EvaluationFault)
    /// The change is no longer kept; the text says how long changes are kept.
    case gone(String)
}

extension SubscriptionHealth {
    /// Returns the health in the form of answers.
    func json(fault: ToldFault?) -> JSONObject {
        var object: JSONObject = ["fired": .integer(Int64(fired))]
        object["lastFired"] = lastFired.map { .object($0.json) }
        if !unreached.isEmpty {
            var reached: JSONObject = [
                "count": .integer(Int64(unreached.values.reduce(0, +)))
            ]
            for reason in UnreachedFiring.Reason.allCases {
                reached[reason.word] = .integer(Int64(unreached[reason] ?? 0))
            }
            reached["last"] = lastUnreached.map { last in
                var json = last.json
                json["reason"] = .string(last.detail.word)
                json["says"] = .string(last.detail.says)
                return .object(json)
            }
            object["unreached"] = .object(reached)
        }
        if undelivered > 0 {
            var ended: JSONObject = ["count": .integer(Int64(undelivered))]
            ended["last"] = lastUndelivered.map { last in
                var json = last.json
                json["reason"] = .string(last.detail)
                return .object(json)
            }
            object["undelivered"] = .object(ended)
        }
        if errors > 0 {
            var failed: JSONObject = ["count": .integer(Int64(errors))]
            failed["last"] = lastError.map { last in
                var json = last.json
                switch fault {
                case .found(let fault)?:
                    json["says"] = .string(fault.says)
                    json["comparison"] = fault.comparison.map { .object($0) }
                case .gone(let kept)?:
                    json["says"] = .string("the change is no longer kept\(kept)")
                case nil: break
                }
                return .object(json)
            }
            object["errors"] = .object(failed)
        }
        return object
    }
}

private extension SubscriptionHealth.Event {
    var json: JSONObject {
        ["position": .string(position.description), "at": .string(at.iso8601)]
    }
}

extension UnreachedFiring.Reason {
    /// The word for the reason in answers.
    var word: String {
        switch self {
        case .noDevice: "noDevice"
        case .origin: "origin"
        case .merged: "merged"
        }
    }

    /// The text for the reason, for people.
    var says: String {
        switch self {
        case .noDevice: "the owner had no device registered"
        case .origin: "the change was made on the owner's own devices"
        case .merged:
            "the push shows nothing to the user, and a push of another subscription already went "
                + "to the same devices"
        }
    }
}
