import RelayModel
import Storage

/// A request for a rehearsal: the subscription, and the changes to use.
struct RehearseQuestion: Sendable {
    /// The default number of changes that one call looks at.
    static let usualChanges = 10_000
    /// The maximum number of changes that one call looks at; a caller continues with `before`.
    static let mostChanges = 100_000
    /// The default number of examples of each kind.
    static let usualExamples = 3
    /// The maximum number of examples of each kind.
    static let mostExamples = 10
    /// The members of the request, without those that say whose subscription it is.
    static let members = [
        "subscription", "subscriptionID", "changes", "since", "until", "after", "before",
        "examples",
    ]

    /// The members that apply if changes are uploaded, and so no log is involved.
    static let membersOfUpload = ["subscription", "subscriptionID", "examples"]

    /// The draft as it was given.
    var draft: JSONReader?
    /// A saved subscription: the one to rehearse, or the one to compare the draft with.
    var saved: SubscriptionID?
    /// The maximum number of changes to look at.
    var changes: Int
    /// Looks only at changes from this moment on.
    var since: Timestamp?
    /// Looks only at changes before this moment.
    var until: Timestamp?
    /// Looks only at changes before this position.
    var before: LogPosition?
    /// Looks only at changes after this position, which may come from the answer of a save.
    var after: LogPosition?
    /// The maximum number of examples of each kind.
    var examples: Int

    /// Parses a request.
    ///
    /// - Throws: `JSONContractError`, or 400 that names the member and what is allowed.
    init(_ body: JSONReader) throws {
        draft = try body.reader("subscription")
        saved = try body.identifier("subscriptionID")
        guard draft != nil || saved != nil else {
            throw APIError(
                .badRequest,
                "subscription: give a draft (subscription) or the ID of a saved subscription "
                    + "(subscriptionID)")
        }
        changes = try body.number("changes", 1...Self.mostChanges) ?? Self.usualChanges
        examples = try body.number("examples", 0...Self.mostExamples) ?? Self.usualExamples
        before = try body.position("before").map { LogPosition($0) }
        after = try body.position("after").map { LogPosition($0) }
        if let after, let before, after >= before {
            throw APIError(
                .badRequest, "before: must be greater than after (\(after)), found \(before)")
        }
        since = try body.moment("since")
        until = try body.moment("until")
        if let since, let until, since >= until {
            throw APIError(
                .badRequest,
                "until: must be later than since (\(since.iso8601)), found \(until.iso8601)")
        }
    }
}

private extension JSONReader {
    /// Reads a whole number within bounds.
    ///
    /// - Throws: 400 that names the bounds.
    func number(_ name: String, _ range: ClosedRange<Int>) throws -> Int? {
        guard let number = try integer(name) else { return nil }
        guard let number = Int(exactly: number), range.contains(number) else {
            throw APIError(
                .badRequest,
                "\(path(of: name)): must be \(range.lowerBound) to \(range.upperBound), "
                    + "found \(number)")
        }
        return number
    }
}

extension JSONReader {
    /// Reads a moment from a text.
    ///
    /// - Throws: `JSONContractError` that says how moments are written.
    func moment(_ name: String) throws(JSONContractError) -> Timestamp? {
        guard let text = try string(name) else { return nil }
        guard let moment = Timestamp(iso8601: text) else {
            throw failure(
                name,
                "a moment is expected, such as \"2026-11-23\" or \"2026-11-23T17:00:00Z\", found "
                    + "\"\(text.shortened)\"")
        }
        return moment
    }
}
