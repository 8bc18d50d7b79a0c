package import RelayModel
package import Storage

/// What is known about one device and the push that it is owed.
package struct DeviceFacts: Sendable {
    /// The receipts of the attempts, in any order.
    package var receipts: [DeliveryReceipt] = []
    /// The retry or dead letter of the delivery, if it has one.
    package var exception: DeliveryException?
    /// What a retry waits for, in words.
    package var waitsFor: String?
    /// When a retry is due.
    package var waitsUntil: Timestamp?
    /// The halt that holds a retry, in words.
    package var halted: String?
    /// The state of the last digest that counted the delivery, if it was held back with others.
    package var digest: DigestFate?
    /// Whether quiet hours postpone that digest.
    package var isPutOff = false
    /// The retry or dead letter of the delivery that told of this one together with others.
    package var tellerException: DeliveryException?
    /// The last receipt of that delivery.
    package var tellerReceipt: DeliveryReceipt?
    /// The delivery as it was sent, if it was held back and sent for others too.
    package var sent: OwedDelivery?
    /// How the device version ended, if it did.
    package var ending: DeviceEnding?
    /// What happened to the push in the queue of a web courier.
    package var courier: CourierFate?
    /// What happened to the notification in the inbox.
    package var inbox: InboxFate?
    /// What the user's clients reported about the push.
    package var client: PushReceipt?
    /// Whether that report is about the push that told of this one together with others.
    package var isClientOfTeller = false
    /// Whether some ranges of the change are still to be worked.
    package var isInRanges = false

    /// Creates facts about a device of which nothing is known.
    package init() {}
}

extension Explainer {
    /// Explains what happened on one device of the owner of a fired subscription.
    package func explain(
        _ device: PastDevice, _ judged: Judged, _ facts: DeviceFacts
    ) -> ExplainedDevice {
        var explained = ExplainedDevice(device)
        guard explainRegistered(device, facts, &explained) else { return explained }
        guard let owed = judged.owed[device.serial] else {
            explainLeftOut(device, judged, &explained)
            return explained
        }
        explained.deliveryID = owed.delivery.id
        explained.note(.origin, .passed, "it did not make the change")
        explainPush(owed, judged.pruned[device.serial] ?? [], facts, &explained)
        explainAttempts(facts, &explained)
        explainEnd(facts, &explained)
        explainReading(facts, &explained)
        explainClient(facts, &explained)
        return explained
    }

    /// Writes the explanation's sentence: what happened on the owner's devices, or on the device
    /// `asked`; `hearing` is the number of devices that the owner had.
    package func conclude(
        _ explanation: inout Explanation, hearing: Int, asked device: DeviceID? = nil
    ) {
        guard explanation.verdict == .fired else { return }
        explanation.deciding = .devices
        let owner = explanation.owner.map { "\($0)" } ?? "the owner"
        explanation.steps.append(
            hearing == 0
                ? ExplainedStep(.devices, .failed, "\(owner) had no device")
                : ExplainedStep(
                    .devices, .passed,
                    "\(owner) had \(hearing) " + (hearing == 1 ? "device" : "devices")))
        let told =
            device == nil
            ? explanation.devices.filter { $0.deciding != .registered } : explanation.devices
        guard !told.isEmpty else {
            explanation.sentence =
                "Fired, but reached no device: \(owner) had no device registered."
            return
        }
        let clauses = told.prefix(5).map { device in
            let reason = device.sentence.dropLast()
            return "\(device.id): \(reason.prefix(1).lowercased())\(reason.dropFirst())"
        }
        let rest = told.count - clauses.count
        explanation.sentence =
            "Fired. " + clauses.joined(separator: "; ")
            + (rest > 0 ? "; and \(rest) more" : "") + "."
    }

    // MARK: Whether anything is owed

    private func explainRegistered(
        _ device: PastDevice, _ facts: DeviceFacts, _ explained: inout ExplainedDevice
    ) -> Bool {
        if device.activation >= past.position {
            let says = "it was registered after the change, at \(place(device.activation))"
            explained.note(.registered, .failed, says)
            explained.end(.leftOut, .registered, says)
            return false
        }
        if !device.hears(past.position), let ended = device.ended {
            let says = Self.text(of: facts.ending, at: place(ended))
            explained.note(
                .registered, .failed, says, ["endedPosition": .string(ended.description)])
            explained.end(.leftOut, .registered, says)
            return false
        }
        explained.note(
            .registered, .passed, "it had been registered since \(place(device.activation))",
            ["activationPosition": .string(device.activation.description)])
        return true
    }

    private static func text(of ending: DeviceEnding?, at place: String) -> String {
        switch ending?.cause {
        case .declaredDead(let receipt)?:
            "its token was forgotten at \(place), because the gateway had answered "
                + "\(receipt.status) \(receipt.reason) to the delivery \(receipt.deliveryID) of "
                + "the change at \(receipt.ordinal.position)"
        case .takenOver?:
            "its token was registered for another device or user at \(place)"
        case .renewed?: "it was registered again at \(place)"
        case .signedOut?: "it was signed out or forgotten at \(place)"
        case nil: "it was forgotten at \(place)"
        }
    }

    private func explainLeftOut(
        _ device: PastDevice, _ judged: Judged, _ explained: inout ExplainedDevice
    ) {
        guard let subscription = judged.subscription?.version.subscription,
            let change = past.change
        else { return }
        let version = device.version(in: past.container)
        let isOrigin =
            DeviceExpansion.devices(among: [version], for: subscription, of: change).isEmpty
        var facts: JSONObject = ["suppress": .string(subscription.suppress.rawValue)]
        // A client may not learn of another user's device, or of a device whose user is unknown.
        if isForOperator || isOrigin || change.origin.userID == subscription.owner {
            facts["originDevice"] = change.origin.deviceID.map { .string($0.rawValue) }
        }
        if isOrigin {
            let says =
                subscription.suppress == .user
                ? "its user made the change, and the subscription suppresses pushes for its own "
                    + "user's changes"
                : "it made the change"
            explained.note(.origin, .failed, says, facts)
            explained.end(.leftOut, .origin, says)
        } else {
            let says =
                "the push shows nothing to the user, and a push of another subscription was "
                + "already composed for the device"
            explained.note(.origin, .passed, "it did not make the change", facts)
            explained.note(.merged, .failed, says)
            explained.end(.leftOut, .merged, says)
        }
    }

    // MARK: The push

    private func explainPush(
        _ owed: OwedDelivery, _ pruned: [String], _ facts: DeviceFacts,
        _ explained: inout ExplainedDevice
    ) {
        let kept: OwedDelivery? =
            switch facts.exception {
            case .retry(let retry): retry.delivery
            case .deadLetter(let letter): letter.delivery
            case nil: nil
            }
        let sent = kept ?? facts.sent
        let push = (sent ?? owed).delivery.notification
        var details: JSONObject = [
            "deliveryID": .string(owed.delivery.id.description),
            "pushType": .string(push.pushType.rawValue), "topic": .string(push.topic),
            "priority": .integer(Int64(push.priority)),
        ]
        details["collapseID"] = push.collapseID.map { .string($0) }
        details["expiration"] = push.expiration.map { .string($0.iso8601) }
        var payload = try? JSONValue(stored: push.payload)
        var says = "a push was composed for it"
        if let count = sent?.delivery.standsFor, count > 1 {
            says += ", which stands for \(count) deliveries in all"
            details["standsFor"] = .integer(count)
        }
        if kept == nil, owed.delivery.badge != nil {
            payload = payload.map(Self.withoutBadge)
            says += "; the badge number is not kept"
        }
        if !pruned.isEmpty {
            details["leftOut"] = .array(pruned.map { .string($0) })
            says += "; \(pruned.joined(separator: ", ")) did not fit"
        }
        explained.payload = payload
        explained.note(.push, .passed, says, details)
    }

    /// Removes the badge from a payload, because the badge is only counted when a push is sent.
    static func withoutBadge(_ payload: JSONValue) -> JSONValue {
        guard case .object(var object) = payload, case .object(var aps)? = object["aps"] else {
            return payload
        }
        aps["badge"] = nil
        object["aps"] = .object(aps)
        return .object(object)
    }

    // MARK: What became of it

    private func explainAttempts(_ facts: DeviceFacts, _ explained: inout ExplainedDevice) {
        let receipts = facts.receipts.sorted { $0.at < $1.at }
        for receipt in receipts where receipt.outcome != .seen {
            if let hold = receipt.hold {
                // This was not an attempt. What the delivery waits for last is said with its end.
                guard receipt != receipts.last else { continue }
                let says = "held back, \(receipt.at.iso8601Seconds): \(hold.words)"
                explained.note(.held, .passed, says, ["at": .string(receipt.at.iso8601)])
                continue
            }
            explained.note(
                .attempt, receipt.outcome == .accepted ? .passed : .failed, receipt.says,
                [
                    "attempt": .integer(Int64(receipt.attempt)),
                    "outcome": .string(receipt.outcome.word),
                    "status": .integer(Int64(receipt.status)), "reason": .string(receipt.reason),
                    "at": .string(receipt.at.iso8601),
                ])
        }
    }

    private func explainEnd(_ facts: DeviceFacts, _ explained: inout ExplainedDevice) {
        switch facts.exception {
        case .retry(let retry):
            explainWaiting(retry, facts, &explained)
            return
        case .deadLetter(let letter):
            let says = DeliveryEnd(letter.reason, status: letter.status).says
            explained.note(
                .deadLetter, .failed, says,
                [
                    "reason": .string(letter.reason), "status": .integer(Int64(letter.status)),
                    "attempts": .integer(Int64(letter.attempts)), "at": .string(letter.at.iso8601),
                ])
            explained.end(.dead, .deadLetter, says)
            return
        case nil: break
        }
        if let digest = facts.digest {
            explainDigest(digest, facts, &explained)
            return
        }
        let newest = facts.receipts.max { ($0.at, $0.attempt) < ($1.at, $1.attempt) }
        if facts.receipts.contains(where: { $0.outcome == .accepted }) {
            let count = facts.sent?.delivery.standsFor
            explained.end(
                .delivered, .attempt,
                (newest.map { "delivered, \($0.at.iso8601Seconds)" } ?? "delivered")
                    + (count.map { ", standing for \($0) deliveries in all" } ?? ""))
        } else if let seen = facts.receipts.last(where: { $0.outcome == .seen }) {
            let says = "told over the device's connection, \(seen.at.iso8601Seconds)"
            explained.note(.held, .passed, says, ["at": .string(seen.at.iso8601)])
            explained.end(.seen, .held, says)
        } else if let newest, newest.outcome != .deferred {
            explained.end(
                .dead, .attempt, DeliveryEnd(newest.reason, status: newest.status).says)
        } else if let client = facts.client, client.isDeliveredThere {
            explained.end(
                .delivered, .delivered,
                "delivered to the device, \(client.deliveredAt.iso8601Seconds)")
        } else if past.position > span.settled || facts.isInRanges {
            explained.end(.owed, .push, "the push is owed, but its delivery is not settled yet")
        } else {
            let says =
                past.position < span.receiptsFrom
                ? "its receipts are no longer kept\(receiptsAreKept)" : "there is no receipt of it"
            explained.note(.attempt, .unknown, says)
            explained.end(.cannotTell, .attempt, says)
        }
    }

    private func explainWaiting(
        _ retry: Retry, _ facts: DeviceFacts, _ explained: inout ExplainedDevice
    ) {
        let until = facts.waitsUntil ?? retry.dueAt
        let reason = facts.waitsFor ?? retry.reason.text
        let isHeld = retry.reason.hold != nil && facts.halted == nil
        let step = isHeld ? ExplainedStep.Name.held : .waiting
        // A paused delivery is not sent at that time: it expires then.
        let word = retry.reason.hold == .paused ? "; the push expires" : ", until"
        let says =
            isHeld
            ? "\(reason)\(word) \(until.iso8601Seconds)"
            : "it waits until \(until.iso8601Seconds): "
                + (facts.halted.map { "\($0): " } ?? "") + reason
        var details: JSONObject = [
            "until": .string(until.iso8601), "reason": .string(reason),
            "attempts": .integer(Int64(retry.attempts)),
        ]
        details["halted"] = facts.halted.map { .string($0) }
        details["standsFor"] = retry.delivery.delivery.standsFor.map { .integer($0) }
        explained.note(step, .failed, says, details)
        explained.end(.waiting, step, says)
    }

    /// Explains a delivery without a row of its own, which a digest counts.
    private func explainDigest(
        _ digest: DigestFate, _ facts: DeviceFacts, _ explained: inout ExplainedDevice
    ) {
        switch digest {
        case .open(let until, let count, let reason):
            let says =
                reason == .paused
                ? "it is held in a digest of \(count) deliveries in all: the subscription is "
                    + "paused; the push expires \(until.iso8601Seconds)"
                : "it is held in a digest of \(count) deliveries in all, due "
                    + until.iso8601Seconds + (reason.map { ": \($0.words)" } ?? "")
                    + (facts.isPutOff ? ", after the quiet hours" : "")
            var details: JSONObject = [
                "until": .string(until.iso8601), "standsFor": .integer(count),
            ]
            details["reason"] = reason.map { .string(WaitReason.held($0).text) }
            explained.note(.held, .failed, says, details)
            explained.end(.waiting, .held, says)
        case .closed(let at, let count, let id, let position):
            var says =
                id == explained.deliveryID
                ? "its push stood for \(count) deliveries in all, \(at.iso8601Seconds)"
                : "it was part of a digest of \(count) deliveries in all, sent by the delivery "
                    + "\(id) of the change at \(position), \(at.iso8601Seconds)"
            if id != explained.deliveryID, let fate = Self.text(ofTeller: facts) {
                says += ", which \(fate)"
            }
            explained.note(
                .held, .passed, says,
                [
                    "at": .string(at.iso8601), "standsFor": .integer(count),
                    "deliveryID": .string(id.description),
                    "position": .string(position.description),
                ])
            explained.end(.folded, .held, says)
        }
    }

    /// Describes what happened to the delivery that told of others, after "which".
    private static func text(ofTeller facts: DeviceFacts) -> String? {
        switch (facts.tellerException, facts.tellerReceipt?.outcome) {
        case (.retry(let retry)?, _):
            "waits until \(retry.dueAt.iso8601Seconds): \(retry.reason.text)"
        case (.deadLetter(let letter)?, _):
            DeliveryEnd(letter.reason, status: letter.status).saysOfOther
        case (nil, .accepted?): "was delivered"
        case (nil, .seen?): "was told over the device's connection"
        case (nil, .dead?), (nil, .unregistered?): "was not delivered"
        case (nil, .deferred?), (nil, nil): nil
        }
    }

    /// Adds the last steps: what only a client knows.
    private func explainClient(_ facts: DeviceFacts, _ explained: inout ExplainedDevice) {
        guard let client = facts.client else { return }
        let push = facts.isClientOfTeller ? "the digest's push" : "it"
        // Without `isThere`, the report does not name the device, and may be about another one.
        func note(_ name: ExplainedStep.Name, _ what: String, _ at: Timestamp, isThere: Bool) {
            let place = isThere ? "the device" : "one of the user's devices"
            explained.note(
                name, isThere ? .passed : .noted,
                "\(push) \(what) \(place), \(at.iso8601Seconds)", ["at": .string(at.iso8601)])
        }
        note(.delivered, "came to", client.deliveredAt, isThere: client.isDeliveredThere)
        guard let openedAt = client.openedAt else { return }
        note(.opened, "was opened on", openedAt, isThere: client.isOpenedThere)
    }

    private func explainReading(_ facts: DeviceFacts, _ explained: inout ExplainedDevice) {
        switch facts.courier {
        case .waits(let until)?:
            explained.note(
                .fetched, .failed, "it waits to be fetched until \(until.iso8601Seconds)")
        case .expired(let at)?:
            explained.note(.fetched, .failed, "it was not fetched before \(at.iso8601Seconds)")
        case .taken(let at)?:
            explained.note(
                .fetched, .passed,
                "it was fetched or replaced by a newer one, \(at.iso8601Seconds)")
        case nil: break
        }
        guard let inbox = facts.inbox else { return }
        explained.note(
            .read, inbox.readAt == nil ? .noted : .passed,
            inbox.readAt.map { "it was marked read in the inbox, \($0.iso8601Seconds)" }
                ?? "it is unread in the inbox")
    }
}
