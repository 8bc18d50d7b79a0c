import RelayModel

//  The calls that only the console's pages make: who is signed in, and what this relay is.

extension AdministrationCall {
    /// Path prefixes of the calls that are about the caller alone.
    static let own = ["/admin/1/session", "/admin/1/console"]

    private static let caller: [JSONForm.Member] = [
        .always("label", .text), .always("access", .words(["main", "change", "read"])),
        .maybe("container", .text), .maybe("environment", .text), .always("signedIn", .flag),
        .maybe("startedAt", .text), .maybe("endsAt", .text), .maybe("idleEndsAt", .text),
    ]

    package static let signIn = AdministrationCall(
        "POST", "/admin/1/session",
        "Begin a session of the console with the token or the code in the request; the answer sets "
            + "a cookie.",
        answers: [
            Answer(201, .members(caller)),
            Answer(429, .component("Error"), "Too many sessions, or too many wrong tokens."),
        ])

    package static let showSession = AdministrationCall(
        "GET", "/admin/1/session", "Show whose token or session this is.",
        answers: [Answer(200, .members(caller))])

    package static let signOut = AdministrationCall(
        "DELETE", "/admin/1/session", "End the session whose cookie the request has.",
        answers: [Answer(200, .members([.always("signedOut", .yes)]))])

    package static let createSessionCode = AdministrationCall(
        "POST", "/admin/1/session/codes",
        "Make a code with which the console can sign in once as the same token. The call needs a "
            + "token, and refuses a session (403).",
        answers: [
            Answer(
                201,
                .members([
                    .always("code", .text), .always("path", .text), .always("expiresAt", .text),
                ]))
        ])

    private static let sessionTimes: [JSONForm.Member] = [
        .always("idleSeconds", .count), .always("sessionSeconds", .count),
    ]

    private static let seriesTimes: [JSONForm.Member] = [
        .always("stepSeconds", .count), .always("spanSeconds", .count),
    ]

    package static let showConsole = AdministrationCall(
        "GET", "/admin/1/console", "Show what the relay is, and what its console can show.",
        answers: [
            Answer(
                200,
                .members([
                    .always("now", .text), .always("startedAt", .text),
                    .always("publicURL", .text), .always("session", .members(caller)),
                    .always("settings", .members(sessionTimes)), .always("phones", .flag),
                    .always("series", .members(seriesTimes).orNull()),
                    .always("retention", .object),
                ]))
        ])

    package static let showSeries = AdministrationCall(
        "GET", "/admin/1/series",
        "Show the last hour of this process, step by step: rates per second, levels and "
            + "latencies. A restart begins the series anew.",
        query: [.maybe("after", .text)],
        answers: [
            Answer(
                200,
                .members([
                    .always("startedAt", .text), .always("stepSeconds", .count),
                    .always("columns", .list(of: .text)),
                    .always("rows", .list(of: JSONForm(["type": "array", "items": [:]]))),
                    .always("after", .text), .maybe("restarted", .flag),
                ]))
        ])

    private static let diagnosis = JSONForm.members([
        .always("state", .words(of: Finding.State.self)), .always("verdict", .text),
        .always(
            "checks",
            .list(
                of: .members([
                    .always("check", .text), .always("state", .words(of: Finding.State.self)),
                    .always("text", .text), .maybe("next", .text),
                    .always("kind", .words(of: Finding.Kind.self)), .maybe("container", .text),
                    .maybe("environment", .text), .maybe("source", .text),
                ]))),
    ])

    package static let showAttention = AdministrationCall(
        "GET", "/admin/1/attention",
        "Show what needs attention first, by the same judgement as the command doctor.",
        answers: [Answer(200, diagnosis)])

    package static let showContainerAttention = AdministrationCall(
        "GET", "\(container)/attention", "Show what needs attention first in one container.",
        answers: [Answer(200, diagnosis)])

    package static let summarizeContainer = AdministrationCall(
        "GET", "\(container)/summary",
        "Show all that is set for a container: settings, keys, sources, schema, what it has and "
            + "may have, and what the gateway said.",
        answers: [
            Answer(
                200,
                .members([
                    .always("settings", .object), .always("credential", .object.orNull()),
                    .always("canSend", .words(of: SendingState.self)), .always("gateway", .object),
                    .always("keys", .list(of: AdministrationRows.accessKey.form)),
                    .always("sources", .list(of: .object)), .always("halts", .list(of: .object)),
                    .always("use", .object), .always("schema", .component("Schema")),
                    .always("retention", .object),
                ]))
        ])

    package static let listPhones = AdministrationCall(
        "GET", "/admin/1/phones",
        "List the phones of a sandbox, and the pushes that its gateway accepted after a place, as "
            + "soon as there are any.",
        query: [.maybe("after", .text), .maybe("hold", .number(from: 0, to: 30))],
        answers: [
            Answer(
                200,
                .members([
                    .always("phones", .list(of: .object)), .always("pushes", .list(of: .object)),
                    .always("after", .text), .maybe("restarted", .flag),
                ]))
        ])
}
