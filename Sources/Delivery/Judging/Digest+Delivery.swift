package import RelayModel
package import Storage

extension Digest {
    /// What is sent for all that it counts: the newest as it was composed, with how many it stands
    /// for where there are several.
    package var delivery: OwedDelivery {
        var owed = newest
        owed.delivery.standsFor = count
        guard count > 1 else { return owed }
        // A newer change of the newest's record is no reason to say nothing of the others.
        owed.delivery.collapsingRecord = nil
        let payload = owed.delivery.notification.payload
        owed.delivery.notification.payload = Self.counting(count, in: payload)
        return owed
    }

    /// The payload with the count beside the position, if it fits; what identifies a push stays.
    private static func counting(_ count: Int64, in payload: [UInt8]) -> [UInt8] {
        guard case .object(var object)? = try? JSONValue(stored: payload) else { return payload }
        var belfry = JSONObject()
        if case .object(let before)? = object["belfry"] { belfry = before }
        belfry["count"] = .integer(count)
        object["belfry"] = .object(belfry)
        var counted: [UInt8] = []
        object.write(to: &counted)
        return counted.count <= Limits.maximumPayloadBytes ? counted : payload
    }
}
