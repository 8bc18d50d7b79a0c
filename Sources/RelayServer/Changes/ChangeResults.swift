import ChangeSources
import RelayModel
import Storage

/// The outcomes of the changes of one webhook, in order.
struct ChangeResults: Sendable {
    private(set) var entries: [JSONValue] = []
    private(set) var conflicts = 0
    private(set) var refusals = 0
    /// The problem of the first refused change; error messages and logs show only this one.
    private var firstRefusal: String?
    private(set) var parked = 0
    private(set) var ignored = 0
    /// The number of changes for which the log had newer versions.
    private(set) var older = 0
    /// The number of changes that were appended and are the newest of their records.
    private(set) var applied = 0
    /// Whether the sender must report the end of the snapshot again, because there is more to
    /// delete.
    private(set) var isUnfinished = false
    /// The reason why the rest was not appended, if the changes came too fast; the sender must
    /// repeat all of them.
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
                reason:
                    "a newer version of the record was already applied; this change fires nothing")
        case .duplicate(let position): add("duplicate", at: position)
        case .conflict(let position):
            conflicts += 1
            add("conflict", at: position, reason: Self.conflict)
        case nil: preconditionFailure("the log answered for fewer changes than it was given")
        }
    }

    private static let conflict =
        "another change with the same ID or position was already appended"

    mutating func addRefusal(path: String, reason: String) {
        refusals += 1
        firstRefusal = firstRefusal ?? (path.isEmpty ? reason : "\(path): \(reason)")
        entries.append(
            ["status": "refused", "path": .string(path), "reason": .string(reason)])
    }

    /// Records changes that were not appended, although some before them were.
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

    /// Records the end of a snapshot, and the number of records that were deleted because it lacked
    /// them.
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

    /// Records that the body with the conflicts was parked, so that there is nothing to refuse any
    /// more.
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

    /// Returns the answer to the webhook: 409 for a conflict and 422 for a refusal, with all
    /// results, otherwise 200.
    ///
    /// If not all changes were appended, the answer is 429; the sender learns of conflicts and
    /// refusals when it repeats the webhook.
    ///
    /// A batch with a refused change is answered with 422 although its other changes were appended.
    /// A source that looks only at the status must not believe that everything was accepted, and
    /// the changes that it repeats are recognised.
    func answer(requiredAnswer: JSONObject?, uuid: String) -> RelayAnswer {
        let results: JSONValue = .array(entries)
        guard let error = failure else {
            return RelayAnswer(json: .object(requiredAnswer ?? ["results": results]))
        }
        return failure(error, results, uuid)
    }

    /// The reason why the webhook as a whole is not accepted; `nil` if it is.
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
