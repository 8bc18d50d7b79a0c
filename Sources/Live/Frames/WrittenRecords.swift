import RelayModel
import Storage

/// What has been written for the frames of one change, or of one return: a record that many results
/// show is written once for each form, and not once for each result.
///
/// It keeps the records it knows; whoever has one lets it go with the change.
struct WrittenRecords {
    /// How a query shows a record; of one record all queries name the same place.
    private struct Key: Hashable {
        let record: ObjectIdentifier
        /// The record before, of the names of what changed.
        var before: ObjectIdentifier?
        let keys: [String]?
        let form: LiveForm
    }

    private var texts: [Key: [UInt8]] = [:]
    /// Those whose identity is in a key: another one must not take their place in memory.
    private var records: [LiveRecord] = []
    private var named: (origin: ChangeOrigin, name: String?)?

    /// The record as `query` shows it.
    mutating func record(
        _ record: LiveRecord, for query: LiveQuery, by writing: any LiveWriting
    ) -> [UInt8] {
        let key = Key(
            record: ObjectIdentifier(record), keys: query.desiredKeys, form: query.form)
        return text(key, of: [record]) { .object(writing.record(record.record, for: query)) }
    }

    /// The names of the fields that `query` shows and that differ, ascending.
    mutating func changedKeys(
        _ before: LiveRecord, _ after: LiveRecord, for query: LiveQuery
    ) -> [UInt8] {
        let key = Key(
            record: ObjectIdentifier(after), before: ObjectIdentifier(before),
            keys: query.desiredKeys, form: query.form)
        return text(key, of: [before, after]) {
            let names =
                query.desiredKeys.map { Set($0) }
                ?? Set(before.record.fields.keys).union(after.record.fields.keys)
            let differing = names.filter { before.record.fields[$0] != after.record.fields[$0] }
            return .array(differing.sorted().map { .string($0) })
        }
    }

    /// How `by` names who made the change.
    mutating func name(of origin: ChangeOrigin, by writing: any LiveWriting) -> String? {
        if let named, named.origin == origin { return named.name }
        let name = writing.name(of: origin)
        named = (origin, name)
        return name
    }

    private mutating func text(
        _ key: Key, of kept: [LiveRecord], _ make: () -> JSONValue
    ) -> [UInt8] {
        if let known = texts[key] { return known }
        let made = make().utf8
        texts[key] = made
        records += kept
        return made
    }
}
