import RelayModel
import Storage

/// The texts written for the frames of one change, or of one returning client, so that a record in
/// many results is written once for each form and not once for each result.
///
/// It retains the records whose texts it has, so its owner discards it after the change.
struct WrittenRecords {
    /// Identifies the text of a record in one form.
    struct Key: Hashable {
        let record: ObjectIdentifier
        /// The record before the change, in the key of the list of changed fields.
        var before: ObjectIdentifier?
        let keys: [String]?
        let form: LiveForm
    }

    /// Identifies the text of an item without its neighbour.
    struct ItemKey: Hashable {
        let key: Key
        let operation: LiveItem.Operation
        let reason: LiveItem.Reason?
        let moved: Bool
        let showsBefore: Bool
        /// The name of the device that made the change.
        let name: String?

        // The record distinguishes nearly all items. The other members rarely differ for one
        // record, and strings are slow to hash.
        func hash(into hasher: inout Hasher) {
            hasher.combine(key)
            hasher.combine(showsBefore)
        }
    }

    /// The text of an item before and after the member that names its neighbour.
    ///
    /// This is a class because up to a thousand results use it: copying the key of a struct would
    /// cost more than comparing it.
    final class Item {
        let key: ItemKey
        let head: [UInt8]
        let tail: [UInt8]

        init(_ key: ItemKey, _ head: [UInt8], _ tail: [UInt8]) {
            self.key = key
            self.head = head
            self.tail = tail
        }
    }

    private var texts: [Key: [UInt8]] = [:]
    private var items: [ItemKey: Item] = [:]
    /// The item used last: most results of one change get the same one.
    private var last: Item?
    /// Keeps the records alive whose identity is in a key, so that no other record gets their
    /// address.
    private var records: [LiveRecord] = []
    private var named: (origin: ChangeOrigin, name: String?)?
    /// The first lists of items: results that a change affects alike get the same list.
    private var lists: [List] = []
    /// The maximum number of lists that are kept; further ones belong to few results.
    private static let mostLists = 16

    /// A list of items with its text.
    private struct List {
        let items: LiveItems
        let traits: LiveShown.Traits
        let isNamed: Bool
        let text: [UInt8]
    }

    /// Returns the text that the frames of all results with these items have in common.
    ///
    /// - Parameters:
    ///   - items: The changes to the results.
    ///   - traits: How the results show them.
    ///   - origin: The device and user that made the change, if it was a single change.
    ///   - make: Writes the text if it is not known yet.
    /// - Returns: The text.
    mutating func list(
        of items: LiveItems, for traits: LiveShown.Traits, by origin: ChangeOrigin?,
        _ make: (inout WrittenRecords) -> [UInt8]
    ) -> [UInt8] {
        let isNamed = origin != nil
        for list in lists
        where list.items === items && list.isNamed == isNamed && list.traits == traits {
            return list.text
        }
        let text = make(&self)
        if lists.count < Self.mostLists {
            lists.append(List(items: items, traits: traits, isNamed: isNamed, text: text))
        }
        return text
    }

    /// Returns the text of a record as a query shows it.
    mutating func record(
        _ record: LiveRecord, for shown: LiveShown, by writing: any LiveWriting
    ) -> [UInt8] {
        let key = Key(
            record: ObjectIdentifier(record), keys: shown.traits.keys, form: shown.traits.form)
        return text(key, of: [record]) { writing.text(of: record.record, for: shown.query) }
    }

    /// Returns the text of the list of shown fields that differ, in ascending order.
    mutating func changedKeys(
        _ before: LiveRecord, _ after: LiveRecord, for traits: LiveShown.Traits
    ) -> [UInt8] {
        let key = Key(
            record: ObjectIdentifier(after), before: ObjectIdentifier(before),
            keys: traits.keys, form: traits.form)
        return text(key, of: [before, after]) {
            let names =
                traits.keys.map { Set($0) }
                ?? Set(before.record.fields.keys).union(after.record.fields.keys)
            let (former, latter) = (before.record.fields, after.record.fields)
            let differing = names.filter { !LiveRecord.isSame(former[$0], as: latter[$0]) }
            return JSONValue.array(differing.sorted().map { .string($0) }).utf8
        }
    }

    /// Returns the text of an item of a change that the device `name` made.
    mutating func item(
        _ item: LiveItem, for traits: LiveShown.Traits, by name: String?,
        _ make: (inout WrittenRecords) -> (head: [UInt8], tail: [UInt8])
    ) -> Item {
        let record = Key(
            record: ObjectIdentifier(item.record), before: item.before.map { ObjectIdentifier($0) },
            keys: traits.keys, form: traits.form)
        let key = ItemKey(
            key: record, operation: item.operation, reason: item.reason, moved: item.moved,
            showsBefore: traits.showsBefore, name: name)
        if let last, last.key == key { return last }
        if let known = items[key] {
            last = known
            return known
        }
        let parts = make(&self)
        records += [item.record] + (item.before.map { [$0] } ?? [])
        let made = Item(key, parts.head, parts.tail)
        items[key] = made
        last = made
        return made
    }

    /// Returns the name of the device that made the change, for the member `by`.
    mutating func name(of origin: ChangeOrigin, by writing: any LiveWriting) -> String? {
        if let named, named.origin == origin { return named.name }
        let name = writing.name(of: origin)
        named = (origin, name)
        return name
    }

    private mutating func text(
        _ key: Key, of kept: [LiveRecord], _ make: () -> [UInt8]
    ) -> [UInt8] {
        if let known = texts[key] { return known }
        let made = make()
        texts[key] = made
        records += kept
        return made
    }
}
