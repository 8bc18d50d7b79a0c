package import RelayModel
package import Storage

/// Shows single changes of a rehearsal: the pushes that they would cause, how near a miss was, and
/// what went wrong.
///
/// The explainer judges the changes and composes the pushes. Pure.
package struct RehearsalExamples: Sendable {
    /// A change, with what each device would get because of it.
    package struct Example: Sendable {
        /// The change.
        package let past: PastChange
        /// The results for the owner's devices.
        package var pushes: [Push] = []
    }

    /// What one device would get.
    package struct Push: Sendable {
        /// The device.
        package let device: DeviceID
        /// Why the device would get nothing, as a sentence.
        package var reason: String?
        /// The push; its payload is ``payload``.
        package var push: PushNotification?
        /// The payload without the badge, which is only counted when a push is sent.
        package var payload: JSONValue?
        /// The parts of the notification that do not fit.
        package var pruned: [String] = []
        /// The delivery that the device would be owed.
        package var owed: OwedDelivery?
        /// The number of deliveries that the push would stand for, if it would tell of others too.
        package var standsFor: Int64?

        /// Replaces the push by the one that would be sent for others too.
        package mutating func tell(_ sent: OwedDelivery) {
            push = sent.delivery.notification
            standsFor = sent.delivery.standsFor
            payload = try? JSONValue(stored: sent.delivery.notification.payload)
            if sent.delivery.badge != nil { payload = payload.map(Explainer.withoutBadge) }
        }
    }

    private let version: PastSubscription
    private let devices: [PastDevice]
    private let span: PastSpan
    private let settings: ContainerSettings
    private let shard: UUIDBytes
    private let trace: MissFinder.Trace

    /// Creates examples of what `subscription` would have done with changes, on `devices`.
    package init(
        of subscription: Subscription, to devices: [PastDevice], span: PastSpan,
        settings: ContainerSettings, shard: UUIDBytes, trace: @escaping MissFinder.Trace
    ) {
        version = PastSubscription(
            version: SubscriptionVersion(
                serial: 1, subscription: subscription, activation: .start))
        self.devices = devices.map { device in
            var device = device
            device.activation = .start
            device.ended = nil
            return device
        }
        self.span = span
        self.settings = settings
        self.shard = shard
        self.trace = trace
    }

    /// Returns the change as the explainer needs it, or `nil` if it cannot be read.
    package func past(_ logged: LoggedPastChange) -> PastChange? {
        guard let change = try? logged.change.change() else { return nil }
        return PastChange(
            position: logged.position, container: settings.key, appendedAt: logged.appendedAt,
            source: logged.source, isStale: false, change: change)
    }

    /// Returns a change that fires the subscription, with the pushes.
    package func example(_ logged: LoggedPastChange) -> Example? {
        guard let past = past(logged) else { return nil }
        var example = Example(past: past)
        let (explainer, judged) = judge(past)
        for device in devices {
            var push = Push(device: device.id)
            let explained = explainer.explain(device, judged, DeviceFacts())
            if let owed = judged.owed[device.serial] {
                push.owed = owed
                push.push = owed.delivery.notification
                push.payload = explained.payload
                push.pruned = judged.pruned[device.serial] ?? []
            } else {
                push.reason = explained.sentence
            }
            example.pushes.append(push)
        }
        return example
    }

    /// Returns why a change does not fire the subscription.
    package func explanation(of logged: LoggedPastChange) -> Explanation? {
        past(logged).map { judge($0).judged.explanation }
    }

    private func judge(
        _ past: PastChange
    ) -> (explainer: Explainer, judged: Explainer.Judged) {
        var version = version
        // Each example is shown as if the subscription had not fired yet.
        if version.version.subscription.firesOnce { version.claimed = past.position }
        let subscription = version.version.subscription
        var question = Explainer.Question(
            id: subscription.id, owner: subscription.owner, versions: [version])
        question.devices = devices
        let explainer = Explainer(
            of: past, span: span, settings: settings, shard: shard, trace: trace)
        return (explainer, explainer.judge(question))
    }

    /// Returns the evaluation error of the condition on a change in words, or `nil` if there is
    /// none.
    package func error(on logged: LoggedPastChange) -> String? {
        guard let change = past(logged)?.change else { return nil }
        return EvaluationFault(
            of: version.version.subscription, on: change, appendedAt: logged.appendedAt,
            trace: trace)?.says
    }
}
