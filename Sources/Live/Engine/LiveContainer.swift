import Matching
import RelayModel
import Storage

/// The groups of one container, and how a change finds them.
final class LiveContainer {
    /// Records of one type in one database.
    struct TableKey: Hashable {
        let database: DatabaseScope
        let owner: UserID?
        let type: RecordType
    }

    /// A record that is a member of results.
    struct Member {
        var record: LiveRecord
        /// Their numbers, ascending.
        var groups: [UInt32]
    }

    /// What is kept of the records of one type.
    ///
    /// One object, because whoever looks at a value of it while another part changes copies all
    /// records that are shown.
    final class Table {
        var records = MemberRecords()
        /// The results on it.
        var groups: Set<UInt32> = []
        /// Those whose members are to be read.
        var unread: Set<UInt32> = []
        var loading: Loading?
    }

    /// A reading that is under way.
    struct Loading {
        let groups: Set<UInt32>
        /// What became of each record that changed meanwhile, last: however often one does, it
        /// does not make a reading begin anew.
        var aside: [RecordID: (position: LogPosition, record: LiveRecord?)] = [:]
        var isTooFar = false
    }

    let key: ContainerKey
    let results: SubscriptionIndex
    let changes: SubscriptionIndex
    /// The results that are somebody's own.
    private(set) var own = OwnResults()
    private var rules: UpdateRules
    private var transitions: LiveTransitions
    private(set) var groups: [UInt32: LiveGroup] = [:]
    var byIdentity: [String: LiveGroup] = [:]
    var tables: [TableKey: Table] = [:]
    /// What the members of its results take in memory, about.
    var memory = 0
    /// Groups that are told changes.
    var changeGroups = 0
    /// What the groups of each user take in memory besides their members, about.
    private(set) var ownBytes: [UserID: Int] = [:]
    /// The orders without bounds by which its results are sorted.
    private var orders: [[LiveSortKey]: ResultOrder] = [:]
    /// How many of them are remembered.
    private static let mostOrders = 64
    /// What conditions may take of one change.
    var mostSteps: Int
    /// What they have taken of the time that all containers share.
    var judging = JudgingShare()

    init(_ key: ContainerKey, seed: UInt64, mostSteps: Int) {
        self.key = key
        self.mostSteps = mostSteps
        results = SubscriptionIndex(seed: seed)
        changes = SubscriptionIndex(seed: seed)
        rules = UpdateRules(indexSeed: seed)
        transitions = LiveTransitions(indexSeed: seed)
    }

    static func tableKey(of query: LiveQuery) -> TableKey? {
        query.recordType.map { type in
            TableKey(database: query.place.database, owner: query.place.owner, type: type)
        }
    }

    static func tableKey(of change: RecordChange) -> TableKey {
        TableKey(database: change.database, owner: change.owner, type: change.recordType)
    }

    func place(of tableKey: TableKey) -> RecordPlace {
        RecordPlace(container: key, database: tableKey.database, owner: tableKey.owner)
    }

    /// The order of a query: one object for all who sort alike, so that it is in the processor's
    /// cache when a change goes through them.
    func order(of query: LiveQuery) -> ResultOrder {
        guard query.firebase == nil, query.start == nil, query.end == nil else {
            return ResultOrder(query)
        }
        if let known = orders[query.order] { return known }
        let order = ResultOrder(query)
        if orders.count < Self.mostOrders { orders[query.order] = order }
        return order
    }

    // MARK: Groups

    /// Has the processor fetch what a change looks at first of each of these groups.
    func fetch(_ numbers: some Sequence<UInt32>) {
        let found = numbers.compactMap { groups[$0].map(GroupPlace.init) }
        for place in found { place.fetch() }
        for place in found { place.fetchMembers() }
    }

    /// Files a group in the index that finds it.
    ///
    /// - Throws: What reading its condition throws, which declaring it has ruled out.
    func insert(_ group: LiveGroup) throws {
        let subscription = group.query.subscription
        let indexed = try Self.indexed(group)
        switch group.query.kind {
        case .result:
            if own.insert(group) { results.insert(indexed) }
            if let tableKey = Self.tableKey(of: group.query) {
                let table = tables[tableKey] ?? Table()
                table.groups.insert(group.number)
                table.unread.insert(group.number)
                tables[tableKey] = table
            }
        case .changes:
            changes.insert(indexed)
            rules.insert(subscription, indexed: indexed)
            transitions.insert(subscription, indexed: indexed)
            changeGroups += 1
        case .notifications: return
        }
        groups[group.number] = group
        group.isFiled = true
        byIdentity[group.identity] = group
        pay(group.ownBytes, for: group)
    }

    /// How an index finds a group: a result as by creations of its records.
    ///
    /// - Throws: What reading its condition throws.
    static func indexed(_ group: LiveGroup) throws -> IndexedSubscription {
        var subscription = group.query.subscription
        if group.query.kind == .result { subscription.firesOn = .create }
        return try IndexedSubscription(subscription, serial: UInt64(group.number))
    }

    /// How many results there are.
    var resultGroups: Int { groups.count - changeGroups }

    private func pay(_ bytes: Int, for group: LiveGroup) {
        // A server may ask for what it likes.
        guard case .user(let user)? = group.payer else { return }
        let sum = ownBytes[user, default: 0] + bytes
        ownBytes[user] = sum > 0 ? sum : nil
    }

    /// Has another reader pay for a group.
    func charge(_ group: LiveGroup, to reader: LiveReader) {
        guard group.payer != reader else { return }
        pay(-group.ownBytes, for: group)
        group.payer = reader
        pay(group.ownBytes, for: group)
    }

    /// Whether there is a group that shows a query to a reader.
    func shows(_ query: LiveQuery, to reader: LiveReader) -> Bool {
        byIdentity[query.identity(of: nil)] != nil || byIdentity[query.identity(of: reader)] != nil
    }

    /// Takes a group out.
    func remove(_ group: LiveGroup) {
        guard groups.removeValue(forKey: group.number) != nil else { return }
        group.isFiled = false
        pay(-group.ownBytes, for: group)
        if byIdentity[group.identity] === group { byIdentity[group.identity] = nil }
        let serial = UInt64(group.number)
        switch group.query.kind {
        case .changes:
            changes.remove(serial: serial)
            rules.remove(serial: serial)
            transitions.remove(group.number)
            changeGroups -= 1
        case .notifications: break
        case .result:
            results.remove(serial: serial)
            // Of those that were found by it another one is.
            if let next = own.remove(group).flatMap({ groups[$0] }),
                let indexed = try? Self.indexed(next)
            {
                results.insert(indexed)
            }
            if let tableKey = Self.tableKey(of: group.query) { remove(group, from: tableKey) }
        }
    }

    private func remove(_ group: LiveGroup, from tableKey: TableKey) {
        guard let table = tables[tableKey] else { return }
        table.groups.remove(group.number)
        table.unread.remove(group.number)
        for member in group.members?.all ?? [] {
            table.records.remove(group.number, from: member.record)
        }
        forgetIfUnused(tableKey)
    }

    /// Forgets a table on which there is no result any more, and that nobody reads.
    func forgetIfUnused(_ tableKey: TableKey) {
        guard let table = tables[tableKey], table.groups.isEmpty, table.loading == nil else {
            return
        }
        tables[tableKey] = nil
    }

    // MARK: Matching

    /// The results that a record belongs to as it is, ascending.
    ///
    /// - Throws: `DearChange` if that takes too much.
    func results(of record: LiveRecord, on tableKey: TableKey) throws(DearChange) -> [UInt32] {
        let found = try Self.results(
            of: record, in: place(of: tableKey), by: results, mostSteps: mostSteps)
        return own.results(found, readableBy: record.readers)
    }

    static func results(
        of record: LiveRecord, in place: RecordPlace, by index: SubscriptionIndex, mostSteps: Int
    ) throws(DearChange) -> [UInt32] {
        var serials: [UInt64] = []
        let change = RecordChange.showing(record.record, in: place)
        let dear = index.matches(
            for: change, now: change.occurredAt, mostSteps: mostSteps, into: &serials)
        if let dear { throw dear }
        return serials.map { UInt32(truncatingIfNeeded: $0) }.sorted()
    }

    /// The record with those who may read it by the grants of its type, if it names nobody.
    func granted(_ record: LiveRecord, on tableKey: TableKey) -> LiveRecord {
        guard record.readers == nil, let number = tables[tableKey]?.groups.first else {
            return record
        }
        return groups[number]?.granted(record) ?? record
    }

    /// Whether a group that is somebody's own may show a record.
    func isReadable(_ record: LiveRecord, _ group: UInt32) -> Bool {
        guard let reader = groups[group]?.reader else { return true }
        return reader.isAmong(record.readers)
    }

    /// The groups that are told a change.
    ///
    /// - Throws: `DearChange` if that takes too much.
    func groups(
        toldOf change: RecordChange, appendedAt: Timestamp
    ) throws(DearChange) -> [LiveTold] {
        guard changeGroups > 0, !change.isSnapshot else { return [] }
        let now = change.occurredAt ?? appendedAt
        var serials: [UInt64] = []
        let dear = changes.matches(
            for: change, now: now, mostSteps: mostSteps, into: &serials)
        if let dear { throw dear }
        try rules.apply(to: change, now: now, mostSteps: mostSteps, matches: &serials)
        var known: [String: Bool] = [:]
        let told = serials.compactMap { groups[UInt32(truncatingIfNeeded: $0)] }
            .filter { $0.query.shows(change, knowing: &known) }
        return try transitions.told(told, of: change, now: now, mostSteps: mostSteps)
    }

    /// The results on one type of record.
    func results(on tableKey: TableKey) -> [LiveGroup] {
        (tables[tableKey]?.groups ?? []).compactMap { groups[$0] }
    }

    /// The groups whose conditions are asked about an entry of the log.
    func groups(asked entry: FollowedEntry) -> [LiveGroup] {
        guard case .change(let logged, _) = entry.body, let change = try? logged.change() else {
            return []
        }
        return groups(mayBeTold: change) + results(on: Self.tableKey(of: change))
    }

    /// The groups of changes that a change may be told.
    func groups(mayBeTold change: RecordChange) -> [LiveGroup] {
        groups.values.filter { group in
            let place = group.query.place
            return group.query.kind == .changes && place.database == change.database
                && place.owner == change.owner
                && (group.query.recordType ?? change.recordType) == change.recordType
        }
    }
}

extension [UInt32] {
    /// Two ascending lists as one, ascending: each number once, with the lists that have it.
    func merged(with other: [UInt32]) -> [(number: UInt32, isHere: Bool, isThere: Bool)] {
        var merged: [(number: UInt32, isHere: Bool, isThere: Bool)] = []
        merged.reserveCapacity(Swift.max(count, other.count))
        var (here, there) = (0, 0)
        while here < count || there < other.count {
            let isHere =
                here < count && (there == other.count || self[here] <= other[there])
            let isThere =
                there < other.count && (here == count || other[there] <= self[here])
            merged.append((isHere ? self[here] : other[there], isHere, isThere))
            if isHere { here += 1 }
            if isThere { there += 1 }
        }
        return merged
    }

    /// Puts a number into an ascending list that has it no more than once.
    mutating func insertAscending(_ number: UInt32) {
        let index = partitioningIndex { $0 >= number }
        if index == count || self[index] != number { insert(number, at: index) }
    }

    /// Takes a number out of an ascending list.
    mutating func removeAscending(_ number: UInt32) {
        let index = partitioningIndex { $0 >= number }
        if index < count, self[index] == number { remove(at: index) }
    }
}
