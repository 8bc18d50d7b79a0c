import RelayModel

/// The page for users whom a client sent to sign in, if the application has configured no page of
/// its own.
enum SignInPage {
    /// The content security policy: the page loads nothing, and must not be framed.
    static let policy =
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

    /// Returns the page for the users of a container who came from a page of `origin`.
    static func html(of key: ContainerKey, origin: String? = nil) -> String {
        let container = escaped(key.container.rawValue)
        var wayBack = "close this window, go back to the\napplication and sign in there."
        if let origin = origin.flatMap(SignInAddress.webOrigin).map(escaped) {
            let link = "<a href=\"\(origin)\" rel=\"noreferrer\">\(origin)</a>"
            wayBack = "go back to\n\(link) and sign in there."
        }
        return """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Sign in to \(container)</title>
            <style>
            body { font: 1.05rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 12vh auto;
              padding: 0 1.5rem; color: #1d2733; background: #f7f8fa }
            h1 { font-size: 1.5rem; line-height: 1.25 }
            p.name { color: #5a6675; margin-top: -0.6rem }
            section { border-top: 1px solid #d7dce3; margin-top: 2rem; padding-top: 0.5rem;
              font-size: 0.92rem; color: #3f4a58 }
            code { background: #e8ebf0; border-radius: 3px; padding: 0.1em 0.3em }
            @media (prefers-color-scheme: dark) {
              body { color: #dfe5ec; background: #161b22 }
              p.name { color: #98a3b1 }
              section { border-color: #333c47; color: #b3bdc9 }
              code { background: #262d37 } }
            </style>
            <h1>Please sign in with the application</h1>
            <p class="name">\(container), \(key.environment.rawValue)</p>
            <p>This application signs its users in by itself: \(wayBack)</p>
            <section>
            <h2>For its developers</h2>
            <p>Send the token of your identity provider as <code>ckWebAuthToken</code>, or as
            <code>Authorization: Bearer</code>. To lead users to your own page instead of this one,
            set <code>signIn.url</code>; the page “Signing in” of the documentation has an
            example.</p>
            </section>
            </html>

            """
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
