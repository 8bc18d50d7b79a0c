import Fanout
import Matching
import PredicateLanguage
import RelayModel
import Storage

extension RehearseService.Answer {
    /// The number of hours, and of days, in one answer: more than a year of each.
    private static let mostTimes = 9000

    /// The answer within the length limit; examples that do not fit are left out.
    var json: JSONValue {
        let counts = tally.counts
        var object: JSONObject = [
            "sentence": .string(sentence), "lookedAt": .object(lookedAt),
            "fired": .integer(Int64(counts.fired)), "pushes": .integer(Int64(counts.pushes)),
            "devices": .integer(Int64(devices)),
            "byOperation": .object(
                JSONObject(
                    ChangeOperation.allCases.map {
                        ($0.rawValue, .integer(Int64(counts.byOperation[$0] ?? 0)))
                    })),
        ]
        let days = Dictionary(
            counts.byHour.map { ($0.key.dayOfHour, $0.value) }, uniquingKeysWith: +)
        object["byDay"] = Self.list(days, seconds: 86_400, "day", length: 10)
        object["byHour"] = Self.list(counts.byHour, seconds: 3600, "hour", length: 13)
        object["once"] = tally.once.map { .object($0.place) }
        object["predicateCost"] = subject.cost?.json
        if case .query(let query, _) = subject.subscription.scope, !query.canonical.isEmpty {
            object["canonicalPredicate"] = .string(query.canonical)
        }
        object["kindness"] = left.map { .object($0.json) }
        object["errors"] = .object(errorsJSON)
        object["nearMisses"] = [
            "count": .integer(Int64(nearCount)), "among": .integer(Int64(closeCount)),
            "examples": .array(near.map { .object($0.change.brief(saying: $0.says)) }),
        ]
        object["change"] = subject.former.map { .object(changeJSON(of: $0)) }
        // If changes of the record type were judged, the type is known, whatever the schema says.
        let warnings = subject.warnings.filter {
            $0.kind != .unknownRecordType || tally.lookedAt == 0
        }
        if !warnings.isEmpty {
            object["warnings"] = .array(warnings.map { .object($0.json) })
        }
        var page = AnswerPage(limit: RehearseQuestion.mostExamples)
        for example in examples where !page.isFull { page.take(.object(example.json)) }
        object["examples"] = .array(page.entries)
        return .object(object)
    }

    private static func list(
        _ counts: [Int64: Int], seconds: Int64, _ name: String, length: Int
    ) -> JSONValue {
        .array(
            counts.sorted { $0.key < $1.key }.suffix(mostTimes).map { time, fired in
                let text = Timestamp(seconds: time * seconds).iso8601Seconds.prefix(length)
                return [name: .string(String(text)), "fired": .integer(Int64(fired))]
            })
    }

    private var lookedAt: JSONObject {
        var object: JSONObject = [
            "changes": .integer(Int64(tally.lookedAt)), "end": .string(end.rawValue),
        ]
        object["from"] = tally.oldest.map { .object($0.place) }
        object["to"] = tally.newest.map { .object($0.place) }
        object["before"] = before.map { .string($0.description) }
        return object
    }

    private var errorsJSON: JSONObject {
        var object: JSONObject = ["count": .integer(Int64(errors))]
        object["example"] = errorExample.map { .object($0.change.brief(saying: $0.says)) }
        return object
    }

    private func changeJSON(of former: Subscription) -> JSONObject {
        let difference = tally.difference
        var object: JSONObject = [
            "subscriptionID": .string(former.id.rawValue),
            "firedBefore": .integer(Int64(difference.firedFormerly)),
            "added": .integer(Int64(difference.added)),
            "removed": .integer(Int64(difference.removed)),
            "addedExamples": .array(added.map { .object($0.brief()) }),
            "removedExamples": .array(removed.map { .object($0.brief()) }),
        ]
        if former.firesOnce { object["once"] = true }
        return object
    }

    // MARK: In words

    private var sentence: String {
        guard let newest = tally.newest, let oldest = tally.oldest else {
            return "No change that it could watch was found. \(endSentence)"
        }
        let counts = tally.counts
        let seen = tally.lookedAt == 1 ? "1 change" : "\(tally.lookedAt) changes"
        var text =
            "Would have fired \(Self.times(counts.fired)) in \(seen) that it could watch, "
            + "from position \(oldest.position) (\(oldest.appendedAt.iso8601Seconds)) to "
            + "\(newest.position) (\(newest.appendedAt.iso8601Seconds))"
        if counts.fired > 0 { text += ": " + pushText(counts.pushes) }
        text += "."
        if counts.pushes > 0, let left { text += " " + left.sentence }
        if let once = tally.once {
            text +=
                " It fires once: by the change at \(once.position), the first of "
                + "\(tally.matched) that match."
        }
        if subject.former != nil {
            let difference = tally.difference
            text +=
                " As it is saved it would have fired "
                + "\(Self.times(difference.firedFormerly)): "
                + "\(Self.text(difference.added)) added, "
                + "\(Self.text(difference.removed)) removed."
        }
        return text + " " + endSentence
    }

    private static func times(_ count: Int) -> String {
        switch count {
        case 0: "not once"
        case 1: "once"
        default: "\(count) times"
        }
    }

    private static func text(_ count: Int) -> String {
        switch count {
        case 0: "none is"
        case 1: "1 change is"
        default: "\(count) changes are"
        }
    }

    private func pushText(_ pushes: Int) -> String {
        guard devices > 0 else { return "no push, because the user has no device" }
        return "\(pushes == 1 ? "1 push" : "\(pushes) pushes") to "
            + "\(devices == 1 ? "1 device" : "\(devices) devices")"
    }

    private var endSentence: String {
        switch end {
        case .changes: "No earlier changes were requested."
        case .since: "All changes of the span were checked."
        case .log: "That is the whole log."
        case .file: "That is the whole file."
        case .retention: "Earlier changes are no longer kept\(logIsKept)."
        case .entries:
            "There are earlier changes: one rehearsal reads at most "
                + "\(RehearseService.lookedThrough) entries of the log."
        case .time: "The time limit was reached before everything was checked."
        case .steps:
            "Evaluating its condition takes more than \(Limits.maximumStepsPerChange) steps on "
                + (dear.map { "the change at \($0)" } ?? "a change")
                + ", which would have disabled the subscription."
        }
    }
}

private extension HeldRehearsal.Outcome {
    var json: JSONObject {
        [
            "pushes": .integer(Int64(pushes)), "together": .integer(Int64(together)),
            "waiting": .integer(Int64(waiting)),
            "held": .object(
                JSONObject(
                    HoldReason.allCases.compactMap { reason in
                        held[reason].map { (reason.rawValue, .integer(Int64($0))) }
                    })),
        ]
    }

    var sentence: String {
        var text = "Of these, \(pushes == 0 ? "none" : "\(pushes)") would have been sent"
        if together > 0 { text += ", standing for \(together) more in digests" }
        if waiting > 0 { text += "; \(waiting) would wait for the subscription to be resumed" }
        return text + "."
    }
}

private extension Int64 {
    /// The day of an hour, both counted since 1970.
    var dayOfHour: Int64 { (self - (self % 24 + 24) % 24) / 24 }
}

private extension LoggedPastChange {
    var place: JSONObject {
        ["position": .string(position.description), "at": .string(appendedAt.iso8601)]
    }
}

private extension PastChange {
    /// Returns a summary of the change, without its values and with an optional remark.
    func brief(saying says: String? = nil) -> JSONObject {
        var object: JSONObject = [
            "position": .string(position.description), "at": .string(appendedAt.iso8601),
        ]
        if let change {
            object["operation"] = .string(change.operation.rawValue)
            object["recordType"] = .string(change.recordType.rawValue)
            object["recordName"] = .string(change.recordID.recordName.rawValue)
            object["zoneName"] = .string(change.recordID.zoneID.zoneName)
        }
        object["says"] = says.map { .string($0) }
        return object
    }
}

private extension RehearsalExamples.Example {
    var json: JSONObject {
        var object = past.brief()
        object["devices"] = .array(pushes.map { .object($0.json) })
        return object
    }
}

private extension RehearsalExamples.Push {
    var json: JSONObject {
        var object: JSONObject = ["deviceID": .string(device.rawValue)]
        object["leftOut"] = reason.map { .string($0) }
        guard let push else { return object }
        object["pushType"] = .string(push.pushType.rawValue)
        object["priority"] = .integer(Int64(push.priority))
        object["topic"] = .string(push.topic)
        object["collapseID"] = push.collapseID.map { .string($0) }
        object["expiration"] = push.expiration.map { .string($0.iso8601) }
        object["payload"] = payload
        object["standsFor"] = standsFor.map { .integer($0) }
        if !pruned.isEmpty { object["pruned"] = .array(pruned.map { .string($0) }) }
        return object
    }
}
