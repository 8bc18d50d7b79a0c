import Delivery
import RelayModel
import Storage

/// The events of the walk, for `belfry listen`.
struct EventAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    /// The source of events; `nil` if this process does not follow a log.
    let events: WalkEvents?

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listenEvents, patience: .watched, respond: listen)
        ]
    }

    /// Returns the events after the parameter `after`, and waits up to `hold` seconds for the first
    /// one.
    private func listen(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        guard let events else {
            throw APIError(
                .badRequest, "no relay is running: only a running relay has events")
        }
        var question = WalkEvents.Question(container: container)
        if let text = request.query["after"] {
            guard let place = WalkEvents.Place(text) else {
                throw APIError(
                    .badRequest,
                    "after: \"\(text.shortened)\" is not valid; take the value of \"after\" from "
                        + "an earlier answer")
            }
            question.place = place
        }
        question.filter.kinds = try kinds(request)
        question.filter.recordType = try request.parameter("recordType")
        question.filter.user = try request.parameter("user")
        question.filter.subscription = try request.parameter("subscription")
        question.limit = try request.limit()
        let hold = try request.number("hold") ?? 0
        guard hold <= Self.longestHold else {
            throw APIError(.badRequest, "hold: must be 0 to \(Self.longestHold) seconds")
        }
        let answer = try await events.next(question, hold: .seconds(Int64(hold)))
        var json: JSONObject = [
            "events": .array(
                answer.events.map { .object(AdministrationRows.event.json($0)) }),
            "after": .string(answer.place.description),
            "missed": .integer(Int64(clamping: answer.missed)),
        ]
        if answer.isRestarted { json["restarted"] = true }
        return RelayAnswer(json: .object(json))
    }

    /// The longest time that a call may be held, in seconds.
    static let longestHold: UInt64 = 30

    /// Returns the event kinds in the parameter `only`, a comma-separated list; all kinds if it is
    /// not given.
    private func kinds(_ request: RelayRequest) throws(APIError) -> Set<WalkEvent.Kind> {
        guard let text = request.query["only"] else { return Set(WalkEvent.Kind.allCases) }
        var kinds: Set<WalkEvent.Kind> = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = WalkEvent.Kind(rawValue: String(word)) else {
                let words = WalkEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw APIError(
                    .badRequest,
                    "only: \"\(String(word).shortened)\" is unknown; allowed are \(words)")
            }
            kinds.insert(kind)
        }
        return kinds
    }
}

extension AdministrationRows {
    private static let answerForm = JSONForm.members([
        .always("attempt", .number(from: 0)),
        .always("outcome", .words(of: AttemptEnd.self)),
        .always("status", .integer), .always("reason", .text), .maybe("meaning", .text),
        .always("becomes", .words(of: SettledEnding.self)), .maybe("nextAt", .text),
        .maybe("milliseconds", JSONForm(["type": "number"])),
    ])

    /// An event of the walk.
    static let event = AdministrationRow<(number: UInt64, event: WalkEvent)>(
        [
            .always("number", .text) { .string(String($0.number)) },
            .always("kind", .words(of: WalkEvent.Kind.self)) { .string($0.event.kind.rawValue) },
            .always("at", .text) { .string($0.event.at.iso8601) },
            .always("position", .text) { .string($0.event.position.description) },
            .maybe("operation", .words(of: ChangeOperation.self)) {
                $0.event.subject.map { .string($0.operation.rawValue) }
            },
            .maybe("recordType", .text) {
                $0.event.subject.map { .string($0.recordType.rawValue) }
            },
            .maybe("recordName", .text) {
                $0.event.subject.map { .string($0.recordName.rawValue) }
            },
            .maybe("outcome", .words(WalkEvent.outcomes)) {
                $0.event.outcome.map { .string($0) }
            },
            .maybe("fired", .integer) { $0.event.fired.map { .integer(Int64($0)) } },
            .maybe("leftOut", .list(of: .text)) {
                $0.event.leftOut.isEmpty
                    ? nil : .array($0.event.leftOut.map { .string($0.rawValue) })
            },
            .maybe("userRecordName", .text) { $0.event.user.map { .string($0.rawValue) } },
            .maybe("subscriptionID", .text) {
                $0.event.subscription.map { .string($0.rawValue) }
            },
            .maybe("deviceID", .text) { $0.event.device.map { .string($0.rawValue) } },
            .maybe("deliveryID", .text) { $0.event.delivery.map { .string($0.description) } },
            .maybe("notification", .object) { $0.event.notification.map(\.shown) },
            .maybe("answer", answerForm) { $0.event.answer.map(\.shown) },
        ],
        columns: [
            .init("number", "number"), .init("kind", "kind"), .init("at", "at"),
            .init("position", "position"), .init("operation", "operation"),
            .init("record type", "recordType"), .init("record", "recordName"),
            .init("fired", "fired"), .init("user", "userRecordName"),
            .init("subscription", "subscriptionID"), .init("device", "deviceID"),
            .init("answer", "answer.reason"), .init("becomes", "answer.becomes"),
        ])
}

extension WalkEvent.Answer {
    /// The gateway's answer as JSON, with the resulting state of the delivery.
    var shown: JSONValue {
        var object: JSONObject = [
            "attempt": .integer(Int64(attempt)), "outcome": .string(outcome.rawValue),
            "status": .integer(Int64(status)), "reason": .string(reason),
        ]
        if !meaning.isEmpty { object["meaning"] = .string(meaning) }
        object["becomes"] = .string(becomes.rawValue)
        object["nextAt"] = dueAt.map { .string($0.iso8601) }
        if latency > .zero {
            object["milliseconds"] = .number((latency / .microseconds(1)).rounded() / 1000)
        }
        return .object(object)
    }
}

extension PushNotification {
    /// The composed notification as JSON, with its payload.
    var shown: JSONValue {
        var object: JSONObject = [
            "pushType": .string(pushType.rawValue), "priority": .integer(Int64(priority)),
            "topic": .string(topic),
        ]
        object["collapseID"] = collapseID.map { .string($0) }
        object["expiration"] = expiration.map { .string($0.iso8601) }
        object["payload"] =
            (try? JSONValue(stored: payload)) ?? .string(String(decoding: payload, as: UTF8.self))
        return .object(object)
    }
}
