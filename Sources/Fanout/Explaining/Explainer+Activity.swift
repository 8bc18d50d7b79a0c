import RelayModel
import Storage

// Explains whether the change can fire anything, and whether the subscription was active.

extension Explainer {
    /// Describes a position of the log, with its time if that is known.
    func place(_ position: LogPosition) -> String {
        moments[position].map { "position \(position) (\($0.iso8601Seconds))" }
            ?? "position \(position)"
    }

    /// Explains whether the change may fire anything.
    ///
    /// Returns the change if it may.
    func explainAppended(_ explanation: inout Explanation) -> RecordChange? {
        var facts: JSONObject = [
            "position": .string(past.position.description),
            "appendedAt": .string(past.appendedAt.iso8601),
        ]
        if isForOperator { facts["source"] = .string(past.source.rawValue) }
        facts["occurredAt"] = past.change?.occurredAt.map { .string($0.iso8601) }
        if let reason = past.setAside {
            // The reason may name subscriptions of other users.
            if isForOperator { facts["reason"] = .string(reason) }
            explanation.fail(
                .appended, "the change was set aside" + (isForOperator ? ": \(reason)" : ""),
                facts)
            return nil
        }
        guard let change = past.change else {
            explanation.fail(.appended, "the change cannot be read", facts)
            return nil
        }
        if past.isStale {
            explanation.fail(
                .appended,
                "the change was stale: a newer version of the record had been applied before it",
                facts)
            return nil
        }
        if change.isSnapshot {
            let what =
                change.operation == .delete
                ? "the change only removed the record from the records that the relay keeps, which "
                    + "fires nothing"
                : "the change was part of a snapshot, and snapshots fire nothing"
            explanation.fail(.appended, what, facts)
            return nil
        }
        explanation.pass(
            .appended,
            "the change was appended at position \(past.position), "
                + past.appendedAt.iso8601Seconds, facts)
        return change
    }

    func activeFacts(_ subject: PastSubscription) -> JSONObject {
        var facts: JSONObject = [
            "serial": .string(String(subject.version.serial)),
            "activationPosition": .string(subject.version.activation.description),
        ]
        facts["endedPosition"] = subject.ended.map { .string($0.description) }
        return facts
    }

    /// Explains whether the subscription had expired.
    ///
    /// Returns `false` if it had.
    func explainExpiry(
        _ subscription: Subscription, _ explanation: inout Explanation
    ) -> Bool {
        guard let moment = subscription.kindness.expiresAt else { return true }
        let facts: JSONObject = ["expiresAt": .string(moment.iso8601)]
        guard subscription.kindness.isOver(at: past.appendedAt) else {
            explanation.pass(
                .expires,
                "the subscription had not expired yet; its expiry was \(moment.iso8601Seconds)",
                facts)
            return true
        }
        explanation.fail(
            .expires, "the subscription had expired at \(moment.iso8601Seconds)", facts)
        return false
    }

    /// Explains why no version of the subscription was active.
    func explainInactive(_ question: Question, _ explanation: inout Explanation) {
        let earlier = question.versions.first { $0.version.activation < past.position }
        let later = question.versions.last { $0.version.activation > past.position }
        if let disabled = question.disabled, disabled.position < past.position,
            disabled.version.activation < past.position
        {
            explanation.fail(
                .active,
                "the subscription had been disabled at \(place(disabled.position)): "
                    + disabled.reason, activeFacts(of: disabled))
            return
        }
        if past.position <= span.endedFrom {
            explanation.lack(
                .active,
                "an earlier version of the relay did not keep subscriptions that ended up to "
                    + "position \(span.endedFrom)")
            return
        }
        if let earlier, let ended = earlier.ended {
            explanation.fail(
                .active,
                earlier.claimed == nil
                    ? "the subscription had been deleted at \(place(ended))"
                        + (later.map { ", and was saved again at \(place($0.version.activation))" }
                            ?? "")
                    : "the subscription fires only once, and it had already fired by the change at "
                        + "\(place(ended))",
                activeFacts(earlier))
            return
        }
        guard let later else {
            explanation.fail(.active, "there was no such subscription")
            return
        }
        explanation.fail(
            .active,
            "the subscription was saved after the change, at \(place(later.version.activation))",
            activeFacts(later))
    }

    private func activeFacts(of disabled: DisabledSubscription) -> JSONObject {
        [
            "serial": .string(String(disabled.version.serial)),
            "activationPosition": .string(disabled.version.activation.description),
            "endedPosition": .string(disabled.position.description),
        ]
    }
}
