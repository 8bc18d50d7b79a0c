import RelayModel
import Storage

//  The calls about the contents of a container: subscriptions, devices, changes, notifications,
//  retries and dead letters.

extension AdministrationCall {
    // MARK: Subscriptions and their index

    package static let listSubscriptions = AdministrationCall(
        listing: "subscriptions", AdministrationRows.subscription,
        at: "\(container)/subscriptions",
        "List subscriptions, the newest first; with after, by serial. Those that were disabled "
            + "have `disabled`, with the reason.",
        query: [
            .user, .recordType, .maybe("state", .words(of: SubscriptionState.self)), .before,
            .after, .limit,
        ], next: .maybe("after", .text), besides: [.before])

    package static let checkSubscription = AdministrationCall(
        "POST", "\(container)/subscriptions/check",
        "Check a condition as if it were saved: what it is, what it costs, and what is doubtful.",
        body: .members(
            [
                .always("query", .object),
                .maybe("firesOn", .list(of: .words(["create", "update", "delete"]))),
                .maybe("firesWhen", .words(of: FiresWhen.self)),
                .maybe("changedKeys", .list(of: .text)),
            ],
            example: ["query": ["recordType": "Artwork", "predicate": "artist == \"a-1\""]]),
        answers: [
            Answer(
                200,
                .members([
                    .always("canonical", .text), .always("predicateCost", .object),
                    .always("warnings", .list(of: .component("SubscriptionWarning"))),
                ]))
        ], list: List(member: "warnings", columns: warningColumns), effect: .reads)

    private static let warningColumns: [AdministrationColumn] = [
        .init("warning", "warning"), .init("reason", "reason"), .init("hint", "hint"),
    ]

    package static let deleteSubscription = AdministrationCall(
        "DELETE", "\(container)/subscriptions/{database}/{user}/{subscription}",
        "Delete a subscription.",
        answers: [
            Answer(200, .members([.always("subscriptionID", .text), .always("deleted", .yes)]))
        ])

    private static let ratio = JSONForm(["type": ["number", "null"]])

    package static let showIndex = AdministrationCall(
        "GET", "\(container)/index",
        "Show what the index of the subscriptions holds, and what matching has cost.",
        answers: [
            Answer(
                200,
                .members(
                    [
                        "subscriptions", "keys", "plainPostings", "rangePostings",
                        "guardedPostings", "sharedPostings", "residuals", "programs", "bytes",
                        "changes", "matches", "candidates", "confirmed", "evaluationErrors",
                    ].map { .always($0, .integer) }
                        + ["matchesPerChange", "candidatesPerMatch", "confirmedPerCandidate"]
                        .map { .always($0, ratio) } + [
                            .always(
                                "recordTypes",
                                .list(
                                    of: .members([
                                        .always("recordType", .text),
                                        .always(
                                            "comparisonsPerChange",
                                            JSONForm(["type": "number"])),
                                    ]))),
                            .always(
                                "paths",
                                .list(
                                    of: .members([
                                        .always("recordType", .text.orNull()),
                                        .always("field", .text), .always("asks", .text),
                                        .always("keys", .integer),
                                    ]))),
                        ]))
        ])

    // MARK: Devices, couriers, notifications, sessions

    package static let listDevices = AdministrationCall(
        listing: "devices", AdministrationRows.device, at: "\(container)/devices",
        "List devices, the newest first; with after, by serial.",
        query: [.user, .device, .before, .after, .limit], next: .maybe("after", .text),
        besides: [.before])

    package static let forgetDevice = AdministrationCall(
        "DELETE", "\(container)/devices/{device}", "Forget a device.", query: [.user],
        answers: [
            Answer(
                200,
                .members([
                    .always("deviceID", .text), .always("userRecordName", .text),
                    .always("deleted", .yes),
                ]))
        ])

    package static let listNotifications = AdministrationCall(
        listing: "notifications", AdministrationRows.notification,
        at: "\(container)/notifications/{user}", "List a user's inbox.",
        query: [.after, .limit], next: .maybe("after", .text),
        besides: [.always("keepsInbox", .flag)])

    package static let listCouriers = AdministrationCall(
        listing: "couriers", AdministrationRows.courier, at: "\(container)/couriers",
        "List web couriers.", query: [.limit])

    package static let listSessions = AdministrationCall(
        listing: "sessions", AdministrationRows.session, at: "\(container)/sessions",
        "List sessions.", query: [.user, .limit])

    package static let revokeSessions = AdministrationCall(
        "DELETE", "\(container)/sessions/{user}", "End every session of a user.",
        answers: [
            Answer(
                200, .members([.always("userRecordName", .text), .always("revoked", .integer)]))
        ])

    package static let listUsers = AdministrationCall(
        listing: "users", AdministrationRows.user, at: "\(container)/users",
        "List the users of a container by name, with how many devices and subscriptions they have.",
        query: [.maybe("after", .name), .maybe("prefix", .text), .limit],
        next: .maybe("after", .text))

    // MARK: Changes

    package static let sendChange = AdministrationCall(
        "POST", "\(container)/sources/{source}/send",
        "Take changes as if the source had posted them; the token replaces its signature.",
        body: .form(
            JSONForm([:]),
            example: [
                "operation": "create", "recordType": "Artwork", "recordName": "sent",
                "after": ["title": "Sent"],
            ]),
        answers: [
            Answer(200, .object), Answer(409, refusedChanges, partlyAppended),
            Answer(422, refusedChanges, partlyAppended),
        ], list: List(member: "results", columns: changeResults))

    package static let listChanges = AdministrationCall(
        listing: "changes", AdministrationRows.change, at: "\(container)/changes",
        "List changes of the log, the newest first; with after, in the order of the log.",
        query: [
            .recordType, .record, .source, .user, .maybe("state", .words(of: ChangeState.self)),
            .before, .after, .limit,
        ], next: .maybe("after", .text), besides: [.before])

    package static let showChange = AdministrationCall(
        "GET", "\(container)/changes/{position}",
        "Show a change with its images and its readers.",
        answers: [
            Answer(
                200,
                AdministrationRows.change.form.and([
                    .maybe("setAside", .text), .always("settled", .flag),
                ]))
        ])

    package static let listenEvents = AdministrationCall(
        "GET", "\(container)/events",
        "Wait for events of changes, from now on or after a place: changes that are judged, "
            + "subscriptions that they fire, pushes as they are handed over to be sent, and the "
            + "gateway's answer to each attempt.",
        query: [
            .maybe("after", .text), .maybe("hold", .number(from: 0, to: 30)),
            .maybe("only", .text), .maybe("recordType", .name), .user,
            .maybe("subscription", .name), .limit,
        ],
        answers: [
            Answer(
                200,
                .members([
                    .always("events", .list(of: AdministrationRows.event.form)),
                    .always("after", .text), .always("missed", .integer),
                    .maybe("restarted", .flag),
                ])),
            Answer(429, .component("Error"), "Too many callers listen."),
        ], list: List(member: "events", columns: AdministrationRows.event.columns))

    package static let listParked = AdministrationCall(
        listing: "parked", AdministrationRows.parked, at: "\(container)/changes/parked",
        "List parked changes, the newest first; with after, by number.",
        query: [.source, .before, .after, .limit], next: .maybe("after", .text),
        besides: [.before])

    package static let replayParked = AdministrationCall(
        "POST", "\(container)/changes/parked/{number}/replay",
        "Send a parked change through the mapper again, as it came or corrected.",
        body: .members(
            [.maybe("raw", JSONForm([:])), .maybe("body", .object)],
            example: ["raw": ["operation": "create"]]),
        answers: [
            Answer(200, .object), Answer(409, refusedChanges, partlyAppended),
            Answer(422, refusedChanges, partlyAppended),
        ], list: List(member: "results", columns: changeResults))

    private static let changeResults: [AdministrationColumn] = [
        .init("number", "number"), .init("status", "status"), .init("position", "position"),
        .init("reason", "reason"),
    ]

    private static let partlyAppended =
        "Some changes are refused or conflict; the others are appended."

    private static let refusedChanges = JSONForm.component("Error").and([
        .maybe("results", .list(of: .component("ChangeResult")))
    ])

    package static let dropParked = AdministrationCall(
        "DELETE", "\(container)/changes/parked/{number}", "Drop a parked change.",
        answers: [Answer(200, .members([.always("number", .integer), .always("deleted", .yes)]))],
        list: List(
            member: "dropped",
            columns: [.init("number", "number"), .init("deleted", "deleted")]))

    // MARK: What waits, and what is dead

    package static let listRetries = AdministrationCall(
        listing: "retries", AdministrationRows.retry, at: "\(container)/retries",
        "List deliveries that wait for their next attempt, those of the newest changes first.",
        query: deliveryFilter + [.before, .limit], next: .before)

    /// The parameters that filter lists of deliveries.
    ///
    /// `subscription` and `device` need `user` too, because their names are unique only for one
    /// user.
    private static let deliveryFilter: [JSONForm.Member] = [
        .user, .subscription, .device, .recordType, .record, .reason,
    ]

    package static let listDeadLetters = AdministrationCall(
        listing: "deadLetters", AdministrationRows.deadLetter, at: "\(container)/deadLetters",
        "List dead letters, the newest first.", query: deliveryFilter + [.before, .limit],
        next: .before)

    package static let listContainerDeliveries = AdministrationCall(
        listing: "deliveries", AdministrationRows.delivery, at: "\(container)/deliveries",
        "List a container's deliveries with their outcome, the newest first.",
        query: [
            .maybe("position", .count), .maybe("subscriptionSerial", .count),
            .maybe("deviceSerial", .count), .maybe("state", .words(of: DeliveryStanding.self)),
            .user, .subscription, .device, .recordType, .record, .before, .limit,
        ], next: .before)

    package static let redriveDeadLetters = AdministrationCall(
        "POST", "\(container)/deadLetters/redrive", "Turn dead letters into retries.",
        body: .members(deadLetterChoice, example: ["all": true]),
        answers: [
            Answer(200, .members([.always("redriven", .integer), .always("expired", .integer)]))
        ])

    package static let dropDeadLetters = AdministrationCall(
        "POST", "\(container)/deadLetters/drop", "Delete dead letters.",
        body: .members(deadLetterChoice, example: ["reason": "BadTopic"]),
        answers: [Answer(200, .members([.always("dropped", .integer)]))])

    private static let deadLetterChoice: [JSONForm.Member] = [
        .maybe("ids", .list(of: .text)), .maybe("reason", .text), .maybe("all", .flag),
    ]

    package static let resume = AdministrationCall(
        "POST", "\(container)/resume", "End the halts of a container's deliveries.",
        answers: [Answer(200, .members([.always("ended", .integer)]))])
}
