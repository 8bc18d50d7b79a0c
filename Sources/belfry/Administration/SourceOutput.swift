import FoundationEssentials
import RelayModel
import RelayServer

/// Shows a change source: its settings, then the texts to paste elsewhere.
enum SourceOutput {
    static func of(_ answer: JSONValue) -> CommandOutput {
        guard case .object(var settings) = answer else { return CommandOutput(answer, .members) }
        settings["sender"] = nil
        settings["warnings"] = nil
        var blocks = [CommandOutput(.object(settings), .members).text(asJSON: false)]
        if case .array(let warnings)? = answer.member(["warnings"]) {
            blocks.append(
                warnings.compactMap { warning in
                    guard case .string(let text) = warning else { return nil }
                    return CommandOutput.shown(.string("warning: \(text)"))
                }.joined(separator: "\n"))
        }
        if settings["secret"] != nil {
            blocks.append("The secret is not shown again.")
        } else if case .array(let secrets)? = answer.member(["verification", "secrets"]),
            !secrets.isEmpty, settings["follow"] == nil
        {
            blocks.append(
                isOfSender(answer)
                    ? "The secret is the one that its sender made: "
                        + "belfry sources rotate … --secret-file FILE sets another."
                    : "The secret was shown when it was made: belfry sources rotate makes a new "
                        + "one."
            )
        }
        if case .string(let setup)? = answer.member(["sender", "setup"]) {
            blocks.append("The sender's side:\n\n\(indented(setup))")
        }
        if case .string(let trial)? = answer.member(["sender", "trial"]) {
            blocks.append("A change to try it with:\n\n\(indented(trial))")
        }
        return CommandOutput(answer, .text(blocks.joined(separator: "\n\n")))
    }

    /// Returns whether the sender makes the secret, so that this relay never showed one.
    private static func isOfSender(_ answer: JSONValue) -> Bool {
        guard case .string(let scheme)? = answer.member(["verification", "scheme"]) else {
            return false
        }
        // Others that sign as Stripe does may be given a secret.
        let header = answer.member(["verification", "header"])
        if scheme == "stripe", case .string(let name)? = header {
            return name.lowercased() == "stripe-signature"
        }
        return ["appwrite", "airtable"].contains(scheme)
    }

    /// Indents text to paste by four spaces, which shells and other readers ignore.
    private static func indented(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { "    " + CommandOutput.shown(.string(String($0))) }.joined(separator: "\n")
    }
}

extension InputFile {
    /// Returns the secret in a file, without surrounding white space such as an editor's final line
    /// break.
    func secret() throws -> String {
        try text().trimmed(\.isWhitespace)
    }
}
