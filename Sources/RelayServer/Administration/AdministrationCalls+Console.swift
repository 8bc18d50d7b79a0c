import RelayModel

//  The calls that the console's pages make besides everybody's: who is signed in, and what the
//  relay is.

extension AdministrationCall {
    /// Paths that are about the caller alone.
    static let own = ["/admin/1/session", "/admin/1/console"]

    private static let caller: [JSONForm.Member] = [
        .always("label", .text), .always("access", .words(["main", "change", "read"])),
        .maybe("container", .text), .maybe("environment", .text), .always("signedIn", .flag),
        .maybe("startedAt", .text), .maybe("endsAt", .text), .maybe("idleEndsAt", .text),
    ]

    package static let signIn = AdministrationCall(
        "POST", "/admin/1/session",
        "Begins a session of the console, as a cookie, with the token or the code that the request "
            + "has.",
        answers: [
            Answer(201, .members(caller)),
            Answer(429, .component("Error"), "Too many are signed in, or guessed."),
        ])

    package static let showSession = AdministrationCall(
        "GET", "/admin/1/session", "Tells whose token or session this is.",
        answers: [Answer(200, .members(caller))])

    package static let signOut = AdministrationCall(
        "DELETE", "/admin/1/session", "Ends the session whose cookie the request has.",
        answers: [Answer(200, .members([.always("signedOut", .yes)]))])

    package static let createSessionCode = AdministrationCall(
        "POST", "/admin/1/session/codes",
        "Makes a code with which the console signs in once as the same token.",
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
        "GET", "/admin/1/console", "Tells what the relay is, and what its console can show.",
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
        "Tells how the last hour of this process went, step by step: what happened in a second, "
            + "and how high things stood. A restart begins anew.",
        query: [.maybe("after", .text)],
        answers: [
            Answer(
                200,
                .members([
                    .always("startedAt", .text), .always("stepSeconds", .count),
                    .always("columns", .list(of: .text)),
                    .always("rows", .list(of: JSONForm(["type": "array"]))),
                    .always("after", .text), .maybe("restarted", .yes),
                ]))
        ])
}
