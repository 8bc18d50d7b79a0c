/// Settings of a subscriber that end a subscription or hold its pushes back.
///
/// They are ours; CloudKit has none of them.
public struct SubscriptionKindness: Sendable, Hashable {
    /// Whether pushes wait until the subscription is resumed.
    public var isPaused = false
    /// The end of the subscription: changes that are appended at or after this moment do not fire
    /// it; exact to the millisecond.
    public var expiresAt: Timestamp?
    /// Whether its pushes are sent during quiet hours.
    public var isUrgent = false
    /// The maximum number of pushes to a device in a span of time.
    public var throttle: PushThrottle?
    /// How long deliveries are collected, to be told in one push.
    public var digest: PushDigest?
    /// Whether a device that is connected and told over its connection gets no push.
    public var isUnlessConnected = false

    /// Creates settings that hold nothing back.
    public init() {}

    /// Whether the settings themselves hold pushes back, regardless of the device's settings.
    public var isHolding: Bool {
        isPaused || isUnlessConnected || throttle != nil || digest != nil
    }

    /// Returns whether a change that is appended at `moment` is too late to fire the subscription.
    public func isOver(at moment: Timestamp) -> Bool {
        expiresAt.map { $0 <= moment } ?? false
    }
}

extension SubscriptionKindness {
    /// The members of a subscription's dictionary that hold these settings.
    static let members = [
        "paused", "expiresAt", "urgent", "throttle", "digest", "unlessConnected",
    ]

    /// Reads the settings from a subscription's dictionary.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(_ reader: JSONReader) throws(JSONContractError) {
        isPaused = try reader.bool("paused") ?? false
        isUrgent = try reader.bool("urgent") ?? false
        isUnlessConnected = try reader.bool("unlessConnected") ?? false
        expiresAt = try reader.expiry("expiresAt")
        if let json = reader.value("throttle") {
            throttle = try PushThrottle(json: json, path: reader.path(of: "throttle"))
        }
        if let json = reader.value("digest") {
            digest = try PushDigest(json: json, path: reader.path(of: "digest"))
        }
    }

    /// Writes the settings that are not the default into a subscription's dictionary.
    func write(to object: inout JSONObject) {
        if isPaused { object["paused"] = true }
        if isUrgent { object["urgent"] = true }
        if isUnlessConnected { object["unlessConnected"] = true }
        object["expiresAt"] = expiresAt.map { .integer($0.milliseconds) }
        object["throttle"] = throttle?.json
        object["digest"] = digest?.json
    }

    /// The form of the settings that is stored beside the subscription, without `expiresAt`; `nil`
    /// if all are the default.
    package var storedForm: JSONObject? {
        var kept = self
        kept.expiresAt = nil
        var object = JSONObject()
        kept.write(to: &object)
        return object.members.isEmpty ? nil : object
    }
}

private extension JSONReader {
    /// Reads a moment as milliseconds since 1970, as CloudKit writes it, or as a text.
    func expiry(_ name: String) throws(JSONContractError) -> Timestamp? {
        let rule =
            "a moment is expected: milliseconds since 1970, or a text such as "
            + "\"2026-12-24T18:00:00Z\""
        switch value(name) {
        case nil: return nil
        case .integer(let milliseconds):
            let moment = Timestamp(milliseconds: milliseconds)
            guard moment.isPlausible else { throw failure(name, rule) }
            return moment
        case .string(let text):
            guard let moment = Timestamp(iso8601: text) else { throw failure(name, rule) }
            return Timestamp(milliseconds: moment.milliseconds)
        default: throw failure(name, rule)
        }
    }
}
