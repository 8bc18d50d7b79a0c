import RelayModel
import Storage

/// What has been written for the frames of one change, or of one return: a record that many results
/// show is written once for each form, and not once for each result.
///
/// It keeps the records it knows; whoever has one lets it go with the change.
struct WrittenRecords {
    /// How a query shows a record; of one record all queries name the same place.
    struct Key: Hashable {
        let record: ObjectIdentifier
        /// The record before, of the names of what changed.
        var before: ObjectIdentifier?
        let keys: [String]?
        let form: LiveForm
    }

    /// What an item says, but for who stands before it in one result.
    struct ItemKey: Hashable {
        let key: Key
        let operation: LiveItem.Operation
        let reason: LiveItem.Reason?
        let moved: Bool
        let showsBefore: Bool
        /// Who made the change.
        let name: String?

        // Which record it is tells nearly all apart; of what else is told of one record there is
        // little, and texts take longer to be hashed than all else.
        func hash(into hasher: inout Hasher) {
            hasher.combine(key)
            hasher.combine(showsBefore)
        }
    }

    /// What stands in an item before, and after, the member that names its neighbour.
    ///
    /// One object, because a thousand results take it: to copy its key for a look at it takes
    /// longer than the look.
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
    /// The last one: most results of one change are told the same.
    private var last: Item?
    /// Those whose identity is in a key: another one must not take their place in memory.
    private var records: [LiveRecord] = []
    private var named: (origin: ChangeOrigin, name: String?)?
    /// Lists of items: most results to which a change did the same are told the same.
    private var lists: [List] = []
    /// How many of them are remembered: what else is told is told of few results.
    private static let mostLists = 16

    /// A list of items as some results are told it.
    private struct List {
        let items: LiveItems
        let traits: LiveShown.Traits
        let isNamed: Bool
        let text: [UInt8]
    }

    /// What all results that are told these items have in common in their frames.
    ///
    /// - Parameters:
    ///   - items: what was done to them.
    ///   - traits: how it is told.
    ///   - origin: who did it, where that is told.
    ///   - make: writes it.
    /// - Returns: It.
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

    /// The record as a query shows it.
    mutating func record(
        _ record: LiveRecord, for shown: LiveShown, by writing: any LiveWriting
    ) -> [UInt8] {
        let key = Key(
            record: ObjectIdentifier(record), keys: shown.traits.keys, form: shown.traits.form)
        return text(key, of: [record]) { .object(writing.record(record.record, for: shown.query)) }
    }

    /// The names of the fields that are shown and that differ, ascending.
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
            return .array(differing.sorted().map { .string($0) })
        }
    }

    /// What is told of an item, which `name` brought about.
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
