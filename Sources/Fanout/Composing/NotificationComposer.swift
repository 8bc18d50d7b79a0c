import Crypto
package import RelayModel
package import Storage

/// Composes the push of a device from a change and a subscription: CloudKit's `aps` and `ck`
/// dictionaries and the gateway's headers.
///
/// Pure.
package struct NotificationComposer: Sendable {
    private let settings: ContainerSettings
    private let change: RecordChange
    private let position: LogPosition
    private let appendedAt: Timestamp

    /// Creates a composer of the notifications of the change at `position`.
    package init(
        settings: ContainerSettings, change: RecordChange, position: LogPosition,
        appendedAt: Timestamp
    ) {
        self.settings = settings
        self.change = change
        self.position = position
        self.appendedAt = appendedAt
    }

    /// Returns the push that a device gets because the change fires `subscription`.
    ///
    /// `notificationID` is the `nid`. If `topic` is `nil`, the container's first topic is used. If
    /// `badge` is `nil`, the push does not change the badge.
    package func notification(
        by subscription: Subscription, notificationID: UUIDBytes, topic: String?, badge: Int64?,
        gateway: GatewayKind = .apns
    ) -> PushNotification {
        var collapseIDs: [String: String?] = [:]
        return notification(
            by: subscription, notificationID: notificationID, topic: topic, badge: badge,
            gateway: gateway, knowing: &collapseIDs)
    }

    /// Returns the push, reusing `collapseIDs`, the collapse IDs made from fields of the record.
    ///
    /// A field may hold a megabyte, so it is digested once and not once for each device.
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
            // A background push has priority 5 (APNs), even if an older version of the relay saved
            // 1.
            priority: info.isVisible ? Int(info.priority ?? 10) : 5,
            topic: topic ?? settings.topics.first ?? "",
            collapseID: collapseID(info, &collapseIDs),
            expiration: appendedAt.advanced(by: .seconds(lifetime)), payload: payload.fitted())
    }

    /// Returns the collapse ID: the value of the record's field named by `collapseIDKey`, as in
    /// Apple's header (CKSubscription.h).
    ///
    /// If the record has no such field, it is the key itself, as in Apple's older documentation.
    ///
    /// Older versions of the relay saved keys with spaces at an end, which the gateway would refuse
    /// each time. So these spaces are removed.
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

    /// Returns a text as a collapse ID, or a digest of it if a header cannot hold it.
    ///
    /// Returns `nil` for an empty text, so that pushes without a value do not collapse.
    private func collapseID(of text: String) -> String? {
        if text.isEmpty { return nil }
        if text.isHeaderText(upTo: Limits.maximumCollapseIDBytes), text.showsItsEnds { return text }
        return Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)).prefix(16))
    }

    /// Returns the payload for the inbox: complete up to
    /// ``RelayModel/Limits/maximumInboxPayloadBytes``.
    ///
    /// A larger payload is pruned as it is for the push.
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

    /// Returns the payload of one push for several deliveries, if the subscription's digest has
    /// texts of its own.
    ///
    /// ``RelayModel/Delivery/countMark`` stands for their number. Returns `nil` if the digest has
    /// no texts.
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

    /// Replaces the subscription's texts by those of a digest, with or without cutting the values
    /// of fields.
    private func tell(_ digest: PushDigest, in payload: inout PushPayload, cutting: Bool) {
        // An empty text, for example of a field that the record does not have, does not replace the
        // subscription's text: an alert must show something.
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

    /// Returns as much of a text as a payload could hold.
    ///
    /// Pruning would cut the rest anyway.
    private func beginning(of text: String) -> String {
        let most = Limits.maximumPayloadBytes
        guard text.utf8.count > most else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.prefix(most + 1)))
    }

    /// Removes the count mark from a text.
    ///
    /// Users may write that character themselves.
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
            // Fields that only decorate an alert must not be in a background push (APNs).
            alert: info.hasAlert ? alert(info) : [:], badge: badge,
            sound: info.soundName?.isEmpty == false ? info.soundName : nil,
            category: info.category,
            // APNs accepts a silent push only as a background push, which must have
            // `content-available`.
            isContentAvailable: info.shouldSendContentAvailable || !info.isVisible,
            isMutable: info.shouldSendMutableContent,
            envelope: envelope(subscription, notificationID), bodyName: bodyName(subscription),
            body: body(subscription, withValues: !isWithoutValues), sequence: position)
        payload.isWithoutValues = isWithoutValues
        return payload
    }

    // MARK: aps

    /// Returns the alert.
    ///
    /// Localization keys override texts. The arguments are names of record fields (CloudKit).
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

    /// The fields that a notification shows: after the change, or before it if the record was
    /// deleted.
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

    /// Whether the values of the desired keys are longer than any payload.
    ///
    /// If they are, they are not even written.
    private func hasEndlessValues(_ subscription: Subscription) -> Bool {
        let names = subscription.notificationInfo.desiredKeys
        guard !names.isEmpty, hasValues(subscription) else { return false }
        // A name may occur twice, which happens too rarely to be checked first.
        return areEndless(names) && areEndless(Set(names))
    }

    private func areEndless(_ names: some Sequence<String>) -> Bool {
        var room = Limits.maximumInboxPayloadBytes
        for name in names {
            if let value = fields[name] { FieldText.take(value, from: &room) }
        }
        return room < 0
    }

    /// Returns `af`: the raw values of those desired keys that have a value.
    private func desiredValues(_ subscription: Subscription) -> JSONValue? {
        var values = JSONObject()
        for name in subscription.notificationInfo.desiredKeys {
            values[name] = fields[name].flatMap(FieldText.rawValue)
        }
        return values.members.isEmpty ? nil : .object(values)
    }
}
