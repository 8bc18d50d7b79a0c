import ChangeSources
import RelayModel
import Storage

/// What became of the changes of one webhook, in order.
struct ChangeResults: Sendable {
    private(set) var entries: [JSONValue] = []
    private(set) var conflicts = 0
    private(set) var refusals = 0
    /// What is wrong with the first change that is refused: lists and logs have no more of it.
    private var firstRefusal: String?
    private(set) var parked = 0
    private(set) var ignored = 0
    /// Changes of which the log had newer versions.
    private(set) var older = 0
    /// Changes that are in the log now, and are the newest of their records.
    private(set) var applied = 0
    /// Whether the end of a snapshot is to be reported again, because there is more to delete.
    private(set) var isUnfinished = false
    /// Why the rest of them did not go in, if they came too fast: the sender is to repeat all.
    private(set) var throttling: APIError?

    mutating func add(_ outcome: AppendOutcome?) {
        switch outcome {
        case .appended(let position):
            applied += 1
            add("appended", at: position)
        case .appendedAsStale(let position):
            older += 1
            add(
                "stale", at: position,
                reason: "a newer version of the record was applied before; it fires nothing")
        case .duplicate(let position): add("duplicate", at: position)
        case .conflict(let position):
            conflicts += 1
            add("conflict", at: position, reason: Self.conflict)
        case nil: preconditionFailure("the log answered for fewer changes than it was given")
        }
    }

    private static let conflict =
        "another change with the same ID or position was appended before"

    mutating func addRefusal(path: String, reason: String) {
        refusals += 1
        firstRefusal = firstRefusal ?? (path.isEmpty ? reason : "\(path): \(reason)")
        entries.append(
            ["status": "refused", "path": .string(path), "reason": .string(reason)])
    }

    /// Changes did not go in, though some before them did.
    mutating func addThrottled(_ error: APIError, changes: Int) {
        throttling = error
        for _ in 0..<changes {
            entries.append(["status": "throttled", "reason": .string(error.reason)])
        }
    }

    mutating func addIgnored(reason: String) {
        ignored += 1
        entries.append(["status": "ignored", "reason": .string(reason)])
    }

    /// A snapshot has ended, and records that it did not contain were deleted.
    mutating func addEnd(isComplete: Bool, deleted: Int) {
        isUnfinished = isUnfinished || !isComplete
        entries.append([
            "status": isComplete ? "complete" : "unfinished",
            "deleted": .integer(Int64(clamping: deleted)),
        ])
    }

    mutating func add(parked number: UInt64, _ body: ParkedBody) {
        parked += 1
        entries.append([
            "status": "parked", "number": .integer(Int64(clamping: number)),
            "path": .string(body.path), "reason": .string(body.reason),
        ])
    }

    /// Notes that the body with the conflicts is parked: there is nothing to refuse any more.
    mutating func parkConflicts(_ number: UInt64, _ body: ParkedBody) {
        conflicts = 0
        add(parked: number, body)
    }

    private mutating func add(
        _ status: String, at position: LogPosition, reason: String? = nil
    ) {
        var object: JSONObject = [
            "status": .string(status), "position": .string(position.description),
        ]
        if status == "duplicate" { object["duplicate"] = true }
        object["reason"] = reason.map { .string($0) }
        entries.append(.object(object))
    }

    /// The answer to the webhook: 409 for a conflict and 422 for a refusal, with every result, else
    /// 200; 429 before these where not all went in, because whoever repeats it hears of them then.
    ///
    /// A batch with a refused change is answered 422 although its other changes are appended: a
    /// source that looks at nothing but the status must not believe that all went well, and what it
    /// repeats is known.
    func answer(requiredAnswer: JSONObject?, uuid: String) -> RelayAnswer {
        let results: JSONValue = .array(entries)
        guard let error = failure else {
            return RelayAnswer(json: .object(requiredAnswer ?? ["results": results]))
        }
        return failure(error, results, uuid)
    }

    /// Why the webhook as a whole is not accepted.
    var failure: APIError? {
        if let throttling { return throttling }
        if conflicts > 0 {
            let ofAll = Counted.text(entries.count, "change")
            return APIError(
                .conflict,
                "\(conflicts) of \(ofAll) \(conflicts == 1 ? "conflicts" : "conflict"): "
                    + Self.conflict)
        }
        guard refusals > 0 else { return nil }
        let ofAll = Counted.text(entries.count, "change")
        return APIError(
            .badRequest,
            "\(refusals) of \(ofAll) \(refusals == 1 ? "is" : "are") refused"
                + (firstRefusal.map { ": \($0)" } ?? ""), httpStatus: 422)
    }

    private func failure(_ error: APIError, _ results: JSONValue, _ uuid: String) -> RelayAnswer {
        var error = error
        error.details["results"] = results
        return RelayAnswer(error, uuid: uuid)
    }
}
