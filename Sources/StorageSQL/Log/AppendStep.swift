import Foundation
import RelayModel
import Storage

/// Appends the changes of one request.
struct AppendStep: Sendable {
    let changes: [PreparedChange]
    let delivery: DedupeKey?
    let source: SourceName
    let now: Timestamp
    let settings: StoreSettings

    func run(
        in commit: inout OpenCommit, container: StoredContainer
    ) throws -> [AppendOutcome] {
        if let delivery,
            case .conflict(let position)? = try remember(delivery, in: &commit, container)
        {
            return changes.map { _ in .conflict(position) }
        }
        var outcomes: [AppendOutcome] = []
        outcomes.reserveCapacity(changes.count)
        for change in changes {
            outcomes.append(try append(change, in: &commit, container))
        }
        return outcomes
    }

    private func append(
        _ prepared: PreparedChange, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> AppendOutcome {
        if let key = prepared.key,
            let known = try remember(key, in: &commit, container)
        {
            return known
        }
        let isStale = try isStale(prepared.change, in: &commit, container)
        let filling =
            isStale
            ? nil
            : try ShadowFilling(prepared, source: source, at: now, in: &commit, container)
        let position = try commit.append(
            filling?.change ?? prepared.change,
            text: filling == nil ? prepared.body : filling?.text,
            createdBy: filling?.creator, source: source, isStale: isStale, in: container, at: now)
        try filling?.write(at: position, in: commit)
        return isStale ? .appendedAsStale(position) : .appended(position)
    }

    /// Remembers that `key` stands at the next position, unless it is known already.
    private func remember(
        _ key: DedupeKey, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> AppendOutcome? {
        let window =
            key.window
            ?? (key.kind == .content ? settings.contentDedupeWindow : settings.dedupeWindow)
        let name: StatementArguments = [
            container.id, source.rawValue, key.kind.stored, Data(key.text.utf8),
        ]
        let value: StatementArguments = [
            Data(key.digest), commit.next.stored, now.advanced(by: window).stored,
        ]
        let count = try commit.statement(.remember)
            .executeCounting(arguments: name + value + [now.stored])
        if count > 0 { return nil }
        let statement = try commit.statement(.known)
        guard let row = try Row.fetchOne(statement, arguments: name) else { return nil }
        let position = LogPosition(stored: row["position"])
        return row["digest"] as Data == Data(key.digest)
            ? .duplicate(position) : .conflict(position)
    }

    /// Notes the version of a record, and says whether a later one was noted before.
    ///
    /// Versions of different sources cannot be compared; the last source wins.
    private func isStale(
        _ change: RecordChange, in commit: inout OpenCommit, _ container: StoredContainer
    ) throws -> Bool {
        guard let version = change.version else { return false }
        let zoneID = change.recordID.zoneID
        return try commit.statement(.noteVersion).executeCounting(arguments: [
            container.id, change.database.rawValue, change.owner?.rawValue ?? "",
            zoneID.ownerRecordName?.rawValue ?? "", zoneID.zoneName, change.recordType.rawValue,
            change.recordID.recordName.rawValue, source.rawValue, version, commit.next.stored,
        ]) == 0
    }
}
