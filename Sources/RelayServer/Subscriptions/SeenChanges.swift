import PredicateLanguage
import RelayModel
import Storage
import Synchronization

/// The shape of a container's latest changes, for warnings about conditions that are saved.
///
/// Nothing of it is stored. It is read from the end of the log, at most ``entriesRead`` entries of
/// all containers, and remembered for a moment. So the cost is bounded. Warnings name the number of
/// changes that were seen.
package final class SeenChanges: Sendable {
    /// What was seen of one record type.
    struct OfType: Sendable {
        /// The fields of records, with the kinds of their values.
        var fields: [String: RecordSchema.Field] = [:]
        /// Whether a complete record was seen, and so which fields it does not have.
        var isWhole = false
        /// The fields of the record before, as each update showed them; `nil` means all fields.
        var fieldsBeforeUpdates: [Set<String>?] = []
        /// The fields of which each update shows whether it changed them; `nil` means all fields.
        var fieldsCompared: [Set<String>?] = []
    }

    /// The audience of a sample.
    enum Audience: Sendable, Hashable {
        /// Users, who see only what everybody may read.
        case users
        /// The operators of the relay.
        case operators
    }

    /// What was seen of a container.
    struct Sample: Sendable {
        var types: [RecordType: OfType] = [:]
        /// The number of changes that were looked at.
        var changes = 0
    }

    /// The number of entries at the end of the log that are read.
    private static let entriesRead = 256
    /// How long a sample is used.
    private static let lifetime = Duration.seconds(5)
    /// The maximum number of remembered samples.
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

    /// Forgets all samples, so that the log is read again.
    package func forget() {
        known.withLock { $0.removeAll() }
    }

    /// Returns the shape of the latest changes of `container` that `audience` may know about.
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
    /// Creates the summary of changes of the type.
    init(_ changes: [RecordChange]) {
        let images = changes.flatMap { [$0.after, $0.before].compactMap { $0 } }
        fields = RecordSchema(inferredFrom: images.map(\.fields)).fields
        isWhole = images.contains { $0.completeness == .full }
        let updates = changes.filter { $0.operation == .update }
        fieldsBeforeUpdates = updates.map(\.fieldsBefore)
        // A source's own list of changed fields says of every field whether it was changed.
        fieldsCompared = updates.map { $0.changedKeys == nil ? $0.fieldsBefore : nil }
    }
}

extension SeenChanges.Sample {
    /// Creates the sample of a container's changes among `entries`.
    ///
    /// Warnings may disclose names of fields and record types to anyone who mistypes one. So users
    /// get only names that they could have read.
    init(
        _ entries: [LogEntry], of container: ContainerKey, for audience: SeenChanges.Audience
    ) {
        var found: [RecordType: [RecordChange]] = [:]
        var room = Self.mostValues
        for entry in entries.reversed() where entry.container == container {
            guard case .change(let change, _, _) = entry.body,
                audience == .operators || change.isEverybodys
            else { continue }
            guard change.takesValues(from: &room) else { break }
            changes += 1
            found[change.recordType, default: []].append(change)
        }
        types = found.mapValues { SeenChanges.OfType($0.reversed()) }
    }

    /// The maximum number of values that are looked at, which takes some milliseconds.
    ///
    /// A record may have thousands.
    private static let mostValues = 20_000
}

private extension RecordChange {
    /// The fields of the record before the change, as the change shows them; `nil` means all
    /// fields.
    var fieldsBefore: Set<String>? {
        guard let before else { return [] }
        return before.completeness == .full ? nil : Set(before.fields.keys)
    }

    /// Takes one from `room` for each value in the images; returns `false` if there are more.
    func takesValues(from room: inout Int) -> Bool {
        for image in [after, before].compactMap(\.self) {
            for value in image.fields.values where !value.takesValues(from: &room) {
                return false
            }
        }
        return true
    }

    /// Whether everybody may read the record, and could before the change.
    var isEverybodys: Bool { database == .public && readers == nil && readersBefore == nil }
}

private extension FieldValue {
    /// Takes one from `room` for the value and for each one in it; returns `false` if there are
    /// more.
    func takesValues(from room: inout Int) -> Bool {
        room -= 1
        guard room >= 0 else { return false }
        switch self {
        case .list(let values):
            for value in values where !value.takesValues(from: &room) { return false }
        case .set(let values):
            for value in values where !value.takesValues(from: &room) { return false }
        case .map(let members):
            for value in members.values where !value.takesValues(from: &room) { return false }
        default: break
        }
        return true
    }
}
