/// How a subscriber wants to be spared: what ends a subscription, and what holds its pushes back
/// (ours; CloudKit has none of it).
public struct SubscriptionKindness: Sendable, Hashable {
    /// Whether its pushes wait until it is resumed.
    public var isPaused = false
    /// Changes that are appended from this moment on do not fire it; exact to the millisecond.
    public var expiresAt: Timestamp?
    /// Whether quiet hours let its pushes through.
    public var isUrgent = false
    /// How many pushes a device gets at most in a span.
    public var throttle: PushThrottle?
    /// How long what fires is waited for, to be told together.
    public var digest: PushDigest?
    /// Whether a device that is connected, and told there, gets no push of it.
    public var isUnlessConnected = false

    /// Spares nobody.
    public init() {}

    /// Whether it holds pushes back by itself, whatever the device asks for.
    public var isHolding: Bool {
        isPaused || isUnlessConnected || throttle != nil || digest != nil
    }

    /// Whether a change that is appended at `moment` comes too late to fire it.
    public func isOver(at moment: Timestamp) -> Bool {
        expiresAt.map { $0 <= moment } ?? false
    }
}

extension SubscriptionKindness {
    /// The members of a subscription's dictionary that say it.
    static let members = [
        "paused", "expiresAt", "urgent", "throttle", "digest", "unlessConnected",
    ]

    /// Reads them.
    ///
    /// - Throws: ``JSONContractError`` at the first that does not fit.
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

    /// Writes what is not the default into a subscription's dictionary.
    func write(to object: inout JSONObject) {
        if isPaused { object["paused"] = true }
        if isUrgent { object["urgent"] = true }
        if isUnlessConnected { object["unlessConnected"] = true }
        object["expiresAt"] = expiresAt.map { .integer($0.milliseconds) }
        object["throttle"] = throttle?.json
        object["digest"] = digest?.json
    }

    /// The form in which what holds pushes back is kept beside the subscription; `nil` if nothing
    /// does.
    package var storedForm: JSONObject? {
        var kept = self
        kept.expiresAt = nil
        var object = JSONObject()
        kept.write(to: &object)
        return object.members.isEmpty ? nil : object
    }
}

private extension JSONReader {
    /// A moment as CloudKit writes them, in milliseconds since 1970, or as a text.
    func expiry(_ name: String) throws(JSONContractError) -> Timestamp? {
        let rule =
            "a moment is expected: milliseconds since 1970, or a text as \"2026-12-24T18:00:00Z\""
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
