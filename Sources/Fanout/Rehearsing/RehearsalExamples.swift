package import RelayModel
package import Storage

/// Shows single changes of a rehearsal: the pushes as they would be, how near a miss was, and what
/// went wrong.
///
/// The explainer judges them, and what it composes is shown. Pure.
package struct RehearsalExamples: Sendable {
    /// A change, with what a device would get of it.
    package struct Example: Sendable {
        /// The change.
        package let past: PastChange
        /// The owner's devices.
        package var pushes: [Push] = []
    }

    /// What one device would get.
    package struct Push: Sendable {
        /// The device.
        package let device: DeviceID
        /// Why it would get nothing, as a sentence.
        package var reason: String?
        /// The push; its payload is ``payload``.
        package var push: PushNotification?
        /// The payload, without the number on the icon, which is counted when it is sent.
        package var payload: JSONValue?
        /// What of the notification does not fit.
        package var pruned: [String] = []
        /// What the device would be owed.
        package var owed: OwedDelivery?
        /// For how many it would be sent, if it would tell of others too.
        package var standsFor: Int64?

        /// Takes the push as it would be sent for others too.
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

    /// Prepares to show what `subscription` would have made of changes, told to `devices`.
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

    /// The change as the explainer has it; `nil` if it cannot be read.
    package func past(_ logged: LoggedPastChange) -> PastChange? {
        guard let change = try? logged.change.change() else { return nil }
        return PastChange(
            position: logged.position, container: settings.key, appendedAt: logged.appendedAt,
            source: logged.source, isStale: false, change: change)
    }

    /// A change that fires it.
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

    /// Why a change does not fire it.
    package func explanation(of logged: LoggedPastChange) -> Explanation? {
        past(logged).map { judge($0).judged.explanation }
    }

    private func judge(
        _ past: PastChange
    ) -> (explainer: Explainer, judged: Explainer.Judged) {
        var version = version
        // It has not fired yet, whichever change it is.
        if version.version.subscription.firesOnce { version.claimed = past.position }
        let subscription = version.version.subscription
        var question = Explainer.Question(
            id: subscription.id, owner: subscription.owner, versions: [version])
        question.devices = devices
        let explainer = Explainer(
            of: past, span: span, settings: settings, shard: shard, trace: trace)
        return (explainer, explainer.judge(question))
    }

    /// What went wrong when the condition was judged on a change, in words; `nil` if nothing did.
    package func error(on logged: LoggedPastChange) -> String? {
        guard let change = past(logged)?.change else { return nil }
        return EvaluationFault(
            of: version.version.subscription, on: change, appendedAt: logged.appendedAt,
            trace: trace)?.says
    }
}
