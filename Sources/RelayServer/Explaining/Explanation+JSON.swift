import Fanout
import RelayModel
import Storage

extension Explanation {
    /// The explanation in the form of answers.
    var json: JSONObject {
        var object: JSONObject = ["position": .string(position.description)]
        object["subscriptionID"] = subscriptionID.map { .string($0.rawValue) }
        object["userRecordName"] = owner.map { .string($0.rawValue) }
        object["serial"] = serial.map { .string(String($0)) }
        object["verdict"] = .string(verdict.rawValue)
        object["step"] = .string(deciding.rawValue)
        object["sentence"] = .string(sentence)
        object["missedBy"] = missedBy.map { .integer(Int64($0)) }
        object["steps"] = .array(steps.map { .object($0.json) })
        if !devices.isEmpty { object["devices"] = .array(devices.map { .object($0.json) }) }
        return object
    }
}

extension ExplainedStep {
    /// The step in the form of answers.
    var json: JSONObject {
        var object: JSONObject = [
            "step": .string(name.rawValue), "outcome": .string(outcome.rawValue),
            "says": .string(says),
        ]
        if !facts.members.isEmpty { object["facts"] = .object(facts) }
        return object
    }
}

extension ExplainedDevice {
    /// The device's part in the form of answers.
    var json: JSONObject {
        var object: JSONObject = [
            "deviceID": .string(id.rawValue), "serial": .string(String(serial)),
            "standing": .string(standing.rawValue), "step": .string(deciding.rawValue),
            "sentence": .string(sentence),
        ]
        object["deliveryID"] = deliveryID.map { .string($0.description) }
        object["payload"] = payload
        object["steps"] = .array(steps.map { .object($0.json) })
        return object
    }
}

extension ExplainService.Answer {
    /// The answer within the length limit; explanations that do not fit are counted with the
    /// others.
    var json: JSONValue {
        var page = AnswerPage(limit: ExplainService.mostExplanations)
        var left = others
        for explanation in explanations {
            if page.isFull { left += 1 } else { page.take(.object(explanation.json)) }
        }
        var object: JSONObject = [
            "sentence": .string(sentence), "explanations": .array(page.entries),
            "others": .integer(Int64(left)),
        ]
        object["lookedThrough"] = lookedThrough.map { range in
            [
                "from": .string(String(range.lowerBound)), "to": .string(String(range.upperBound)),
            ]
        }
        if isCut { object["cut"] = true }
        if !known.isEmpty {
            object["known"] = .array(
                known.map { known in
                    [
                        "position": .string(known.position.description),
                        "until": .string(known.until.iso8601),
                    ]
                })
        }
        if !parked.isEmpty { object["parked"] = .array(parked.map { .string(String($0)) }) }
        return .object(object)
    }
}
