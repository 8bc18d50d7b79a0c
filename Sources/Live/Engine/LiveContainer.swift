import Matching
import RelayModel
import Storage

/// The groups of one container, and the indexes by which a change finds them.
final class LiveContainer {
    /// Identifies the records of one type in one database.
    struct TableKey: Hashable {
        let database: DatabaseScope
        let owner: UserID?
        let type: RecordType
    }

    /// A record that is a member of results.
    struct Member {
        var record: LiveRecord
        /// The numbers of these results, ascending.
        var groups: [UInt32]
    }

    /// The state of the records of one type.
    ///
    /// This is an object because reading one part of a value while another part changes would copy
    /// all records that are shown.
    final class Table {
        var records = MemberRecords()
        /// The results on the type.
        var groups: Set<UInt32> = []
        /// The results whose members have not been read yet.
        var unread: Set<UInt32> = []
        var loading: Loading?
        /// Whether there has been a record that not everybody may read, so that ordered results
        /// belong to one reader each.
        ///
        /// It does not matter which results the record belongs to: a reader who may not read it
        /// would learn that it satisfies a condition.
        var namesReaders = false

        /// Takes note of who may read a record.
        ///
        /// - Returns: Whether it is the first one that not everybody may read.
        func note(readersOf record: LiveRecord?) -> Bool {
            guard !namesReaders, record?.isForSome ?? false else { return false }
            namesReaders = true
            return true
        }
    }

    /// A reading that is in progress.
    struct Loading {
        let groups: Set<UInt32>
        /// The latest state of each record that changed during the reading.
        ///
        /// Only the latest state is kept, so frequent changes of one record do not restart the
        /// reading.
        var aside: [RecordID: (position: LogPosition, record: LiveRecord?)] = [:]
        var isTooFar = false
    }

    let key: ContainerKey
    let results: SubscriptionIndex
    let changes: SubscriptionIndex
    /// The results that belong to one reader each.
    private(set) var own = OwnResults()
    private var rules: UpdateRules
    private var transitions: LiveTransitions
    private(set) var groups: [UInt32: LiveGroup] = [:]
    var byIdentity: [String: LiveGroup] = [:]
    var tables: [TableKey: Table] = [:]
    /// The estimated memory of the members of its results.
    var memory = 0
    /// The number of groups of changes.
    var changeGroups = 0
    /// The readers of the clients that have queries here, by the numbers of the clients.
    var readers: [UInt64: LiveReader] = [:]
    /// The estimated memory of each user's groups besides their members.
    private(set) var ownBytes: [UserID: Int] = [:]
    /// The orders without bounds by which its results are sorted, for sharing.
    private var orders: [[LiveSortKey]: ResultOrder] = [:]
    /// The maximum number of remembered orders.
    private static let mostOrders = 64
    /// The maximum number of steps that conditions may take for one change.
    var mostSteps: Int
    /// The time that its conditions have taken of the time that all containers share.
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

    /// Returns the order of a query.
    ///
    /// Queries that sort alike share one object, so that it is in the processor's cache when a
    /// change goes through their results.
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

    /// Prefetches what a change reads first of each of these groups.
    func fetch(_ numbers: some Sequence<UInt32>) {
        let found = numbers.compactMap { groups[$0].map(GroupPlace.init) }
        for place in found { place.fetch() }
        for place in found { place.fetchMembers() }
    }

    /// Files a group in the index that finds it.
    ///
    /// - Throws: The error of parsing its condition, which the check at its declaration has ruled
    ///   out.
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

    /// Returns the entry by which an index finds a group; a result is found by creations of
    /// records.
    ///
    /// - Throws: The error of parsing its condition.
    static func indexed(_ group: LiveGroup) throws -> IndexedSubscription {
        var subscription = group.query.subscription
        if group.query.kind == .result { subscription.firesOn = .create }
        return try IndexedSubscription(subscription, serial: UInt64(group.number))
    }

    /// The number of results.
    var resultGroups: Int { groups.count - changeGroups }

    private func pay(_ bytes: Int, for group: LiveGroup) {
        // A server may ask for as much as it likes.
        guard case .user(let user)? = group.payer else { return }
        let sum = ownBytes[user, default: 0] + bytes
        ownBytes[user] = sum > 0 ? sum : nil
    }

    /// Makes another reader pay for a group.
    func charge(_ group: LiveGroup, to reader: LiveReader) {
        guard group.payer != reader else { return }
        pay(-group.ownBytes, for: group)
        group.payer = reader
        pay(group.ownBytes, for: group)
    }

    /// Returns whether there is a group that shows a query to a reader.
    func shows(_ query: LiveQuery, to reader: LiveReader) -> Bool {
        byIdentity[query.identity(of: nil)] != nil || byIdentity[query.identity(of: reader)] != nil
    }

    /// Removes a group.
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
            // Another reader's result of the same query takes its place in the index.
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

    /// Forgets a table without results, unless it is being read.
    func forgetIfUnused(_ tableKey: TableKey) {
        guard let table = tables[tableKey], table.groups.isEmpty, table.loading == nil else {
            return
        }
        tables[tableKey] = nil
    }

    // MARK: Matching

    /// Returns the numbers of the results that a record belongs to as it is, ascending.
    ///
    /// - Throws: `DearChange` if matching takes too many steps.
    func results(of record: LiveRecord, on tableKey: TableKey) throws(DearChange) -> [UInt32] {
        let unheard = UnheardResults()
        defer { close(unheard.serials) }
        let found = try Self.results(
            of: record, in: place(of: tableKey), by: results, mostSteps: mostSteps,
            among: audience(of: record.readers, unheard))
        return own.results(found, readableBy: record.readers)
    }

    /// Returns the numbers of the results that an index finds for a record, ascending.
    ///
    /// Where that takes long, only conditions for which `mayJudge` holds are evaluated: they are
    /// shown to one of the users who may read the record. The cost of the others would tell their
    /// users what the record holds.
    static func results(
        of record: LiveRecord, in place: RecordPlace, by index: SubscriptionIndex, mostSteps: Int,
        among mayJudge: ((UInt64) -> Bool)?
    ) throws(DearChange) -> [UInt32] {
        var serials: [UInt64] = []
        let change = RecordChange.showing(record.record, in: place)
        let dear = index.matches(
            for: change, now: change.occurredAt, mostSteps: mostSteps, into: &serials,
            among: mayJudge)
        if let dear { throw dear }
        return serials.map { UInt32(truncatingIfNeeded: $0) }.sorted()
    }

    /// Returns the record with its readers by the grants of its type, if it names no readers
    /// itself.
    func granted(_ record: LiveRecord, on tableKey: TableKey) -> LiveRecord {
        guard record.readers == nil, let number = tables[tableKey]?.groups.first else {
            return record
        }
        return groups[number]?.granted(record) ?? record
    }

    /// Returns whether the reader of a group may read a record; true for groups of all readers.
    func isReadable(_ record: LiveRecord, _ group: UInt32) -> Bool {
        guard let reader = groups[group]?.reader else { return true }
        return reader.isAmong(record.readers)
    }

    /// Returns the groups that are sent a change.
    ///
    /// - Throws: `DearChange` if matching takes too many steps.
    func groups(
        toldOf change: RecordChange, appendedAt: Timestamp
    ) throws(DearChange) -> [LiveTold] {
        guard changeGroups > 0, !change.isSnapshot else { return [] }
        let now = change.occurredAt ?? appendedAt
        var serials: [UInt64] = []
        let unheard = UnheardResults()
        defer { close(unheard.serials) }
        let later = audience(of: change.readers, unheard)
        let earlier = audience(of: change.readersBefore ?? change.readers, unheard)
        let dear = changes.matches(
            for: change, now: now, mostSteps: mostSteps, into: &serials, among: later)
        if let dear { throw dear }
        try rules.apply(
            to: change, now: now, mostSteps: mostSteps, among: earlier, matches: &serials)
        var known: [String: Bool] = [:]
        let told = serials.compactMap { groups[UInt32(truncatingIfNeeded: $0)] }
            .filter { $0.query.shows(change, knowing: &known) }
        return try transitions.told(
            told, of: change, now: now, mostSteps: mostSteps, among: earlier)
    }

    /// Returns whether not everybody may read all records of a query's type.
    func namesReaders(_ query: LiveQuery) -> Bool {
        Self.tableKey(of: query).flatMap { tables[$0] }?.namesReaders ?? false
    }

    /// Returns the results on one type of record.
    func results(on tableKey: TableKey) -> [LiveGroup] {
        (tables[tableKey]?.groups ?? []).compactMap { groups[$0] }
    }

    /// Returns the groups whose conditions may be judged for an entry of the log.
    func groups(asked entry: FollowedEntry) -> [LiveGroup] {
        guard case .change(let logged, _) = entry.body, let change = try? logged.change() else {
            return []
        }
        return groups(mayBeTold: change)
            + heard(results(on: Self.tableKey(of: change)), toldOf: change)
    }

    /// Returns the groups of changes that might be sent a change.
    func groups(mayBeTold change: RecordChange) -> [LiveGroup] {
        let there = groups.values.filter { group in
            let place = group.query.place
            return group.query.kind == .changes && place.database == change.database
                && place.owner == change.owner
                && (group.query.recordType ?? change.recordType) == change.recordType
        }
        return heard(there, toldOf: change)
    }
}

extension [UInt32] {
    /// Merges two ascending lists into one that has each number once, with the lists that have it.
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

    /// Inserts a number into an ascending list, unless the list has it already.
    mutating func insertAscending(_ number: UInt32) {
        let index = partitioningIndex { $0 >= number }
        if index == count || self[index] != number { insert(number, at: index) }
    }

    /// Removes a number from an ascending list.
    mutating func removeAscending(_ number: UInt32) {
        let index = partitioningIndex { $0 >= number }
        if index < count, self[index] == number { remove(at: index) }
    }
}
