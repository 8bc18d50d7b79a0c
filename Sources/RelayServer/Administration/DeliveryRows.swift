import Delivery
import RelayModel
import Storage

extension OwedDelivery {
    /// The delivery with its payload, and with its token hidden.
    var json: JSONObject {
        let notification = delivery.notification
        let payload =
            (try? JSONValue(stored: notification.payload))
            ?? .string(String(decoding: notification.payload, as: UTF8.self))
        return [
            "deliveryID": .string(delivery.id.description),
            "position": .string(delivery.ordinal.position.description),
            "subscriptionID": .string(delivery.subscriptionID.rawValue),
            "userRecordName": .string(delivery.owner.rawValue),
            "deviceID": .string(delivery.deviceID.rawValue),
            "apnsToken": .string(delivery.token.description),
            "topic": .string(notification.topic), "payload": payload,
        ]
    }
}

extension Retry {
    var json: JSONValue {
        var object = delivery.json
        object["attempts"] = .integer(Int64(attempts))
        object["dueAt"] = .string(dueAt.iso8601)
        object["reason"] = .string(reason.text)
        return .object(object)
    }

    /// With what it waits for, and until when.
    func shown(among halts: [HaltInForce], at now: Timestamp) -> JSONValue {
        guard case .object(var object) = json else { return json }
        let pause = pause(among: halts, at: now)
        object["pause"] = [
            "kind": .string(pause.kind), "until": .string(pause.until.iso8601),
            "reason": .string(pause.reason),
        ]
        return .object(object)
    }

    /// A halt that tries again before the delivery is due does not hold it.
    private func pause(
        among halts: [HaltInForce], at now: Timestamp
    ) -> (kind: String, until: Timestamp, reason: String) {
        let halt = halts.filter { $0.holds(delivery.delivery) }.max { $0.until < $1.until }
        if let halt, dueAt <= max(now, halt.until) { return ("halt", halt.until, halt.reason) }
        if reason.isPace { return ("pace", dueAt, reason.text) }
        // What is due waits for its turn.
        return (dueAt <= now ? "turn" : "backOff", dueAt, reason.text)
    }
}

extension DeadLetter {
    var json: JSONValue {
        var object = delivery.json
        object["attempts"] = .integer(Int64(attempts))
        object["status"] = .integer(Int64(status))
        object["reason"] = .string(reason)
        object["at"] = .string(at.iso8601)
        return .object(object)
    }
}
