import Crypto
package import RelayModel
package import Storage

/// From a change and a subscription to what a device gets: CloudKit's `aps` and `ck` dictionaries
/// and the gateway's headers.
///
/// Pure.
package struct NotificationComposer: Sendable {
    private let settings: ContainerSettings
    private let change: RecordChange
    private let position: LogPosition
    private let appendedAt: Timestamp

    /// Composes the notifications of the change at `position`.
    package init(
        settings: ContainerSettings, change: RecordChange, position: LogPosition,
        appendedAt: Timestamp
    ) {
        self.settings = settings
        self.change = change
        self.position = position
        self.appendedAt = appendedAt
    }

    /// What a device gets by `subscription`, which the change fires.
    ///
    /// `notificationID` is the `nid`. Without a `topic` it is the container's first; without a
    /// `badge` the icon's number is left alone.
    package func notification(
        by subscription: Subscription, notificationID: UUIDBytes, topic: String?, badge: Int64?,
        gateway: GatewayKind = .apns
    ) -> PushNotification {
        var collapseIDs: [String: String?] = [:]
        return notification(
            by: subscription, notificationID: notificationID, topic: topic, badge: badge,
            gateway: gateway, knowing: &collapseIDs)
    }

    /// The same, with the collapse IDs that fields of the record make: a field may hold a megabyte,
    /// and is digested once and not for each device.
    func notification(
        by subscription: Subscription, notificationID: UUIDBytes, topic: String?, badge: Int64?,
        gateway: GatewayKind, knowing collapseIDs: inout [String: String?]
    ) -> PushNotification {
        let info = subscription.notificationInfo
        var payload = payload(by: subscription, notificationID, badge: badge)
        payload.alertForm = gateway == .courier ? .dictionary : .compact
        let lifetime = info.expirationSeconds ?? settings.expirationSeconds
        return PushNotification(
            pushType: info.isVisible ? .alert : .background,
            // A background push has 5 and nothing else (APNs), also where an older version saved 1.
            priority: info.isVisible ? Int(info.priority ?? 10) : 5,
            topic: topic ?? settings.topics.first ?? "",
            collapseID: collapseID(info, &collapseIDs),
            expiration: appendedAt.advanced(by: .seconds(lifetime)), payload: payload.fitted())
    }

    /// The value of the record's field of that name, as Apple's header has it (CKSubscription.h);
    /// of a record that has no such field the name itself, as Apple's older text has it.
    ///
    /// What an older version saved with a blank at an end would be refused each time.
    private func collapseID(
        _ info: NotificationInfo, _ known: inout [String: String?]
    ) -> String? {
        if let key = info.collapseIDKey, fields[key] != nil {
            if let id = known[key] { return id }
            let id = collapseID(of: argument(key))
            known.updateValue(id, forKey: key)
            return id
        }
        guard let key = info.collapseIDKey, !key.isHeaderText(upTo: Limits.maximumCollapseIDBytes)
        else { return info.collapseIDKey }
        let trimmed = key.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        let text = String(trimmed)
        return text.isHeaderText(upTo: Limits.maximumCollapseIDBytes) ? text : nil
    }

    /// A text as a collapse ID, or what stands for it where a header cannot hold it; nothing for
    /// none, so that what has no value does not collapse.
    private func collapseID(of text: String) -> String? {
        if text.isEmpty { return nil }
        if text.isHeaderText(upTo: Limits.maximumCollapseIDBytes), text.showsItsEnds { return text }
        return Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)).prefix(16))
    }

    /// What the inbox keeps: the whole payload, with nothing left out, up to
    /// ``RelayModel/Limits/maximumInboxPayloadBytes``; a larger one as it is pushed.
    package func inboxPayload(
        by subscription: Subscription, notificationID: UUIDBytes
    ) -> [UInt8] {
        var payload = payload(by: subscription, notificationID, badge: nil)
        payload.alertForm = .dictionary
        let most = Limits.maximumInboxPayloadBytes
        guard !payload.isLonger(than: most) else { return payload.fitted() }
        let whole = payload.utf8()
        return whole.count <= most ? whole : payload.fitted()
    }

    /// What a device gets for several, by a subscription whose digest has texts of its own, with
    /// ``RelayModel/Delivery/countMark`` for their number; `nil` if it has none.
    func togetherPayload(
        by subscription: Subscription, notificationID: UUIDBytes, badge: Int64?,
        gateway: GatewayKind
    ) -> [UInt8]? {
        guard let digest = subscription.kindness.digest, digest.hasTexts,
            subscription.notificationInfo.isVisible
        else { return nil }
        var payload = payload(by: subscription, notificationID, badge: badge)
        payload.alertForm = gateway == .courier ? .dictionary : .compact
        var shorter = payload
        tell(digest, in: &payload, cutting: false)
        tell(digest, in: &shorter, cutting: true)
        payload.shorterAlert = shorter.alert
        return payload.fitted()
    }

    /// Puts the texts of a digest in place of the subscription's own, the values of fields cut or
    /// not.
    private func tell(_ digest: PushDigest, in payload: inout PushPayload, cutting: Bool) {
        // A text of nothing, as of a field that the record does not have, leaves the subscription's
        // own: an alert must show something.
        let title = digest.title.map { text($0, cutting: cutting) }
        let body = digest.alertBody.map { text($0, cutting: cutting) }
        if let title, !title.isEmpty {
            for name in ["title-loc-key", "title-loc-args"] { payload.alert[name] = nil }
            payload.alert["title"] = .string(title)
        }
        if let key = digest.alertLocalizationKey, !key.isEmpty {
            payload.dropBody()
            payload.alert["loc-key"] = .string(key)
            let arguments = digest.alertLocalizationArgs
            if !arguments.isEmpty {
                payload.alert["loc-args"] = .array(
                    arguments.map { .string(text($0, cutting: cutting)) })
            }
        } else if let body, !body.isEmpty {
            payload.dropBody()
            payload.alert["body"] = .string(body)
        }
    }

    private func text(_ template: DigestTemplate, cutting: Bool) -> String {
        let whole = template.parts.map { part in
            switch part {
            case .text(let text): unmarked(text)
            case .count: String(Delivery.countMark)
            case .field(let name): unmarked(value(name, cutting: cutting))
            }
        }.joined()
        return beginning(of: whole)
    }

    private func value(_ name: String, cutting: Bool) -> String {
        let value = beginning(of: argument(name))
        guard cutting else { return value }
        let short = PushPayload.shortened(value)
        return short.utf8.count < value.utf8.count ? short + "…" : value
    }

    /// As much of a text as a payload could hold: what comes behind it is cut anyway.
    private func beginning(of text: String) -> String {
        let most = Limits.maximumPayloadBytes
        guard text.utf8.count > most else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.prefix(most + 1)))
    }

    /// A text without the mark for the number, which anybody may write.
    private func unmarked(_ text: String) -> String {
        guard text.unicodeScalars.contains(Delivery.countMark) else { return text }
        let kept = text.unicodeScalars.filter { $0 != Delivery.countMark }
        return String(String.UnicodeScalarView(kept))
    }

    private func payload(
        by subscription: Subscription, _ notificationID: UUIDBytes, badge: Int64?
    ) -> PushPayload {
        let info = subscription.notificationInfo
        let isWithoutValues = hasEndlessValues(subscription)
        var payload = PushPayload(
            // What only decorates an alert must not be in a background push (APNs).
            alert: info.hasAlert ? alert(info) : [:], badge: badge,
            sound: info.soundName?.isEmpty == false ? info.soundName : nil,
            category: info.category,
            // APNs takes a push that shows nothing only as a background push, which must have it.
            isContentAvailable: info.shouldSendContentAvailable || !info.isVisible,
            isMutable: info.shouldSendMutableContent,
            envelope: envelope(subscription, notificationID), bodyName: bodyName(subscription),
            body: body(subscription, withValues: !isWithoutValues), sequence: position)
        payload.isWithoutValues = isWithoutValues
        return payload
    }

    // MARK: aps

    /// Keys override texts; arguments are names of record fields (CloudKit).
    private func alert(_ info: NotificationInfo) -> JSONObject {
        var alert = JSONObject()
        set(
            &alert, "", info.alertBody.map { ("body", $0) }, info.alertLocalizationKey,
            info.alertLocalizationArgs)
        set(
            &alert, "title-", info.title.map { ("title", $0) }, info.titleLocalizationKey,
            info.titleLocalizationArgs)
        set(
            &alert, "subtitle-", info.subtitle.map { ("subtitle", $0) },
            info.subtitleLocalizationKey, info.subtitleLocalizationArgs)
        alert["action-loc-key"] = info.alertActionLocalizationKey.map { .string($0) }
        alert["launch-image"] = info.alertLaunchImage.map { .string($0) }
        return alert
    }

    private func set(
        _ alert: inout JSONObject, _ prefix: String, _ text: (name: String, value: String)?,
        _ key: String?, _ arguments: [String]
    ) {
        guard let key else {
            if let text { alert[text.name] = .string(text.value) }
            return
        }
        alert["\(prefix)loc-key"] = .string(key)
        if !arguments.isEmpty {
            alert["\(prefix)loc-args"] = .array(arguments.map { .string(argument($0)) })
        }
    }

    /// The record whose values a notification shows: as it is, or as it was if it is gone.
    private var fields: RecordFields { (change.after ?? change.before)?.fields ?? [:] }

    private func argument(_ name: String) -> String {
        switch fields[name] {
        case .string(let text)?: text
        case .integer(let number)?: String(number)
        case .double(let number)?: FieldText.digits(of: number)
        case .bool(let flag)?: flag ? "1" : "0"
        case .timestamp(let moment)?: moment.iso8601Seconds
        case .reference(let reference)?: reference.recordID.recordName.rawValue
        case .uuid(let uuid)?: uuid.description
        default: ""
        }
    }

    // MARK: ck

    private func envelope(_ subscription: Subscription, _ notificationID: UUIDBytes) -> JSONObject {
        [
            "ce": .integer(settings.key.environment.wireValue),
            "cid": .string(settings.key.container.rawValue),
            "ckuserid": .string(subscription.owner.rawValue),
            "nid": .string(notificationID.description),
        ]
    }

    private func bodyName(_ subscription: Subscription) -> String {
        switch subscription.scope {
        case .query: "qry"
        case .zone: "fet"
        case .database: "met"
        }
    }

    private func body(_ subscription: Subscription, withValues: Bool) -> JSONObject {
        var body: JSONObject = [:]
        if subscription.scope.isQuery {
            if hasValues(subscription), withValues { body["af"] = desiredValues(subscription) }
            body["fo"] = .integer(change.operation.wireValue)
            body["rid"] = .string(change.recordID.recordName.rawValue)
        }
        body["dbs"] = .integer(change.database.wireValue)
        body["sid"] = .string(subscription.id.rawValue)
        body["zid"] = .string(change.recordID.zoneID.zoneName)
        let owner = change.recordID.zoneID.ownerRecordName ?? change.owner
        body["zoid"] = .string(owner?.rawValue ?? ZoneID.defaultOwner)
        return body
    }

    /// CloudKit sends field values for creations and updates only.
    private func hasValues(_ subscription: Subscription) -> Bool {
        subscription.scope.isQuery && change.operation != .delete
    }

    /// Whether the values of the desired keys are longer than any payload, so that nobody has to
    /// write them to leave them out.
    private func hasEndlessValues(_ subscription: Subscription) -> Bool {
        let names = subscription.notificationInfo.desiredKeys
        guard !names.isEmpty, hasValues(subscription) else { return false }
        // A name may be there twice, which is seldom worth a look.
        return areEndless(names) && areEndless(Set(names))
    }

    private func areEndless(_ names: some Sequence<String>) -> Bool {
        var room = Limits.maximumInboxPayloadBytes
        for name in names {
            if let value = fields[name] { FieldText.take(value, from: &room) }
        }
        return room < 0
    }

    /// `af`: the raw values of the desired keys that have one.
    private func desiredValues(_ subscription: Subscription) -> JSONValue? {
        var values = JSONObject()
        for name in subscription.notificationInfo.desiredKeys {
            values[name] = fields[name].flatMap(FieldText.rawValue)
        }
        return values.members.isEmpty ? nil : .object(values)
    }
}
