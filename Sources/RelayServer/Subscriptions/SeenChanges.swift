import PredicateLanguage
import RelayModel
import Storage
import Synchronization

/// What the last changes of a container looked like, for whoever saves a condition on them.
///
/// Nothing is kept of it on the disk: it is read from the end of the log, of which at most
/// ``entriesRead`` entries are looked at, whosever they are, and remembered for a moment. So the
/// cost is bounded, and what was not seen is said with how many changes were.
package final class SeenChanges: Sendable {
    /// What was seen of one record type.
    struct OfType: Sendable {
        /// The fields of records, with the kinds that they had.
        var fields: [String: RecordSchema.Field] = [:]
        /// Whether a whole record was seen, and so which fields it did not have.
        var isWhole = false
        /// The fields that each update showed of the record before; `nil` means all of them.
        var fieldsBeforeUpdates: [Set<String>?] = []
    }

    /// Who is told of it.
    enum Audience: Sendable, Hashable {
        /// Users: only what everybody may read was seen.
        case users
        /// Whoever administrates the relay.
        case operators
    }

    /// What was seen of a container.
    struct Sample: Sendable {
        var types: [RecordType: OfType] = [:]
        /// The changes that were looked at.
        var changes = 0
    }

    /// The entries at the end of the log that are looked at.
    private static let entriesRead = 256
    /// How long a sample is good.
    private static let lifetime = Duration.seconds(5)
    /// The containers whose samples are remembered.
    private static let mostContainers = 256

    private let log: any ShardLog
    private struct Key: Hashable {
        let container: ContainerKey
        let audience: Audience
    }

    private let known = Mutex<[Key: (at: Timestamp, sample: Sample)]>([:])

    init(_ log: any ShardLog) {
        self.log = log
    }

    /// Forgets every sample, so that the log is looked at anew.
    package func forget() {
        known.withLock { $0.removeAll() }
    }

    /// What the last changes of `container` looked like that `audience` may know of.
    func sample(
        of container: ContainerKey, for audience: Audience, at now: Timestamp
    ) async throws -> Sample {
        let key = Key(container: container, audience: audience)
        let remembered = known.withLock { $0[key] }
        if let remembered, now.duration(since: remembered.at) < Self.lifetime,
            now >= remembered.at
        {
            return remembered.sample
        }
        let head = try await log.head().rawValue
        let start = head - min(head, UInt64(Self.entriesRead))
        let entries = try await log.entries(
            after: LogPosition(start), limit: Self.entriesRead)
        let sample = Sample(entries, of: container, for: audience)
        known.withLock { known in
            if known.count >= Self.mostContainers { known.removeAll(keepingCapacity: true) }
            known[key] = (now, sample)
        }
        return sample
    }
}

extension SeenChanges.OfType {
    /// Looks at changes of the type.
    init(_ changes: [RecordChange]) {
        let images = changes.flatMap { [$0.after, $0.before].compactMap { $0 } }
        fields = RecordSchema(inferredFrom: images.map(\.fields)).fields
        isWhole = images.contains { $0.completeness == .full }
        fieldsBeforeUpdates = changes.filter { $0.operation == .update }.map { change in
            guard let before = change.before else { return [] }
            return before.completeness == .full ? nil : Set(before.fields.keys)
        }
    }
}

extension SeenChanges.Sample {
    /// What entries say of the changes of `container`.
    ///
    /// Names of fields and record types are told to whoever asks by a slip: to users those only
    /// that they could have read.
    init(
        _ entries: [LogEntry], of container: ContainerKey, for audience: SeenChanges.Audience
    ) {
        var found: [RecordType: [RecordChange]] = [:]
        for entry in entries where entry.container == container {
            guard case .change(let change, _, _) = entry.body,
                audience == .operators || change.isEverybodys
            else { continue }
            changes += 1
            found[change.recordType, default: []].append(change)
        }
        types = found.mapValues(SeenChanges.OfType.init)
    }
}

private extension RecordChange {
    /// Whether everybody may read the record, and might before.
    var isEverybodys: Bool { database == .public && readers == nil && readersBefore == nil }
}
