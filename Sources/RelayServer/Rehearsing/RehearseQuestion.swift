import RelayModel
import Storage

/// What somebody wants rehearsed, and by which changes.
struct RehearseQuestion: Sendable {
    /// Changes that one call looks at, unless said otherwise.
    static let usualChanges = 10_000
    /// Changes that one call looks at, at most; whoever wants more goes on with `before`.
    static let mostChanges = 100_000
    /// Examples of each kind, unless said otherwise.
    static let usualExamples = 3
    /// Examples of each kind, at most.
    static let mostExamples = 10
    /// The members that say it, beside whose it is.
    static let members = [
        "subscription", "subscriptionID", "changes", "since", "until", "after", "before",
        "examples",
    ]

    /// Those of them that speak of no log, for changes that are sent along.
    static let membersOfUpload = ["subscription", "subscriptionID", "examples"]

    /// The draft as it was given.
    var draft: JSONReader?
    /// A saved subscription: the one that is rehearsed, or that the draft is compared with.
    var saved: SubscriptionID?
    /// How many changes are looked at.
    var changes: Int
    /// Changes from this moment on.
    var since: Timestamp?
    /// Changes before this moment.
    var until: Timestamp?
    /// Changes before this position.
    var before: LogPosition?
    /// Changes after this position, as the answer of a save says it.
    var after: LogPosition?
    /// How many examples of each kind.
    var examples: Int

    /// Reads it.
    ///
    /// - Throws: `JSONContractError`, or 400 that names the member and what is allowed.
    init(_ body: JSONReader) throws {
        draft = try body.reader("subscription")
        saved = try body.identifier("subscriptionID")
        guard draft != nil || saved != nil else {
            throw APIError(
                .badRequest,
                "subscription: say what is to be rehearsed, by a draft (subscription), or by the "
                    + "name of a saved one (subscriptionID)")
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
    /// A whole number within bounds.
    ///
    /// - Throws: 400 that names them.
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
    /// A moment as a text.
    ///
    /// - Throws: `JSONContractError` that says how moments are written.
    func moment(_ name: String) throws(JSONContractError) -> Timestamp? {
        guard let text = try string(name) else { return nil }
        guard let moment = Timestamp(iso8601: text) else {
            throw failure(
                name,
                "a moment is expected, as \"2026-11-23\" or \"2026-11-23T17:00:00Z\", found "
                    + "\"\(text.shortened)\"")
        }
        return moment
    }
}
