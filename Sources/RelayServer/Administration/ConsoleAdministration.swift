import RelayModel
import Storage

/// The calls that describe the relay and show the measurements of its last hour.
struct ConsoleAdministration: AdministrationTable {
    let settings: ConsoleSettings
    /// The measurements of the last hour; `nil` if this process does not follow a log.
    let series: RecentSeries?
    /// Whether there are sandbox phones to show.
    let hasPhones: Bool
    let publicURL: PublicURL
    let retention: Retention
    let now: @Sendable () -> Timestamp
    let startedAt: Timestamp

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.showConsole, respond: show),
            AdministrationRoute(.showSeries, respond: showSeries),
        ]
    }

    private func show(
        _ request: RelayRequest, _ administrator: Administrator
    ) async throws -> RelayAnswer {
        RelayAnswer(json: [
            "now": .string(now().iso8601), "startedAt": .string(startedAt.iso8601),
            "publicURL": .string("\(publicURL)"), "session": .object(administrator.json(settings)),
            "settings": [
                "idleSeconds": .integer(settings.idle.components.seconds),
                "sessionSeconds": .integer(settings.whole.components.seconds),
            ],
            "phones": .bool(hasPhones),
            "series": series.map { series in
                [
                    "stepSeconds": .integer(series.settings.step.components.seconds),
                    "spanSeconds": .integer(series.settings.span.components.seconds),
                ]
            } ?? .null,
            "retention": retention.json,
        ])
    }

    private func showSeries(_ request: RelayRequest) async throws -> RelayAnswer {
        guard let series else {
            throw APIError(
                .badRequest, "no relay is running: only a running relay has data of the last hour")
        }
        let answer = try series.answer(after: request.query["after"])
        var json: JSONObject = [
            "startedAt": .string(startedAt.iso8601),
            "stepSeconds": .integer(series.settings.step.components.seconds),
            "columns": .array(SeriesRing.columns.map { .string($0) }),
            "rows": .array(
                answer.rows.map { row in
                    .array(
                        [.string(row.at.iso8601)]
                            + row.values.map { $0.map(Self.number) ?? .null })
                }),
            "after": .string(answer.place),
        ]
        if answer.isRestarted { json["restarted"] = true }
        return RelayAnswer(json: .object(json))
    }

    private static func number(_ value: Double) -> JSONValue {
        Int64(exactly: value).map { .integer($0) } ?? .number(value)
    }
}

extension Retention {
    /// How long, and how much of, each kind of data is kept; unlimited kinds are omitted.
    var json: JSONValue {
        var object = JSONObject()
        let ages = [
            ("logSeconds", logAge), ("receiptSeconds", receiptAge),
            ("deadLetterSeconds", deadLetterAge), ("parkedSeconds", parkedAge),
            ("quarantineSeconds", quarantineAge), ("shadowSeconds", shadowAge),
            ("deletedSeconds", deletedAge),
        ]
        for (name, age) in ages { object[name] = age.map { .integer($0.components.seconds) } }
        let amounts = [
            ("logBytes", logBytes), ("receiptBytes", receiptBytes), ("deadLetters", deadLetters),
            ("parkedBytes", parkedBytes),
        ]
        for (name, amount) in amounts { object[name] = amount.map { .integer(Int64($0)) } }
        return .object(object)
    }
}
