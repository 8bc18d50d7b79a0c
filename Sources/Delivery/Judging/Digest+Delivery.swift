package import RelayModel
package import Storage

extension Digest {
    /// The delivery that is sent for all deliveries that the digest counts: the newest one as it
    /// was composed.
    ///
    /// If there are several, it also says how many it stands for.
    package var delivery: OwedDelivery {
        var owed = newest
        owed.delivery.standsFor = count
        guard count > 1 else { return owed }
        // A newer change of that record is no reason to leave out the other deliveries.
        owed.delivery.collapsingRecord = nil
        let own = owed.delivery.notification.payload
        owed.delivery.notification.payload =
            owed.delivery.together.flatMap { Self.counting(count, in: $0) }
            ?? Self.counting(count, in: own) ?? own
        return owed
    }

    /// Adds the number of deliveries to a payload: as `belfry.count`, and in place of each count
    /// mark.
    ///
    /// Returns `nil` if the payload does not fit.
    private static func counting(_ count: Int64, in payload: [UInt8]) -> [UInt8]? {
        guard case .object(var object)? = try? JSONValue(stored: payload) else { return nil }
        if case .object(var aps)? = object["aps"], let alert = aps["alert"] {
            aps["alert"] = telling(count, in: alert)
            object["aps"] = .object(aps)
        }
        let told = object
        var belfry = JSONObject()
        if case .object(let before)? = object["belfry"] { belfry = before }
        belfry["count"] = .integer(count)
        object["belfry"] = .object(belfry)
        var counted: [UInt8] = []
        object.write(to: &counted)
        if counted.count <= Limits.maximumPayloadBytes { return counted }
        // The texts with the number matter more than Belfry's own member.
        var plain: [UInt8] = []
        told.write(to: &plain)
        return plain.count <= Limits.maximumPayloadBytes ? plain : nil
    }

    /// Replaces each count mark in an alert by the number.
    private static func telling(_ count: Int64, in alert: JSONValue) -> JSONValue {
        switch alert {
        case .string(let text):
            .string(
                text.unicodeScalars.contains(Delivery.countMark)
                    ? text.unicodeScalars.split(
                        separator: Delivery.countMark, omittingEmptySubsequences: false
                    ).map { String($0) }.joined(separator: String(count)) : text)
        case .array(let elements): .array(elements.map { telling(count, in: $0) })
        case .object(let members):
            .object(
                JSONObject(members.members.map { ($0.name, telling(count, in: $0.value)) }))
        default: alert
        }
    }
}
