import Matching
import RelayModel
import Storage

/// An entry of the log, prepared for returning clients.
struct PastEntry {
    let entry: FollowedEntry
    let change: RecordChange
    /// The awaited results of which the record was a member before the entry.
    var before: Set<UInt32> = []
    /// Where the change moved its record, by the groups of changes that are sent it.
    var transitions: [UInt32: LiveTransition] = [:]

    var position: LogPosition { entry.position }
}

/// The changes of one container while clients were away, read and matched once for all clients that
/// come back together.
struct PastChanges {
    /// The groups for which the changes are read.
    let targets: Set<UInt32>
    private(set) var entries: [PastEntry] = []
    /// The indices of the entries that each group of changes is sent.
    private(set) var told: [UInt32: [Int]] = [:]
    /// The indices of the entries of each record, for types that have results.
    private(set) var touches: [LiveContainer.TableKey: [RecordID: [Int]]] = [:]
    /// The records that were members of each result at some time.
    private(set) var members: [UInt32: Set<RecordID>] = [:]
    /// For each type, the last position before which a record named readers.
    private(set) var named: [LiveContainer.TableKey: LogPosition] = [:]
    /// The groups that begin anew, because there was too much for them.
    private(set) var tooFar: Set<UInt32> = []
    /// For each type, the last position at which records were forgotten because the container no
    /// longer kept them.
    private var forgotten: [RecordType: LogPosition] = [:]
    /// Whether one of the groups is a result on a type.
    private var awaited: [LiveContainer.TableKey: Bool] = [:]
    private var weights: [UserID: Int] = [:]
    private var weight = 0
    /// The bytes of the entries.
    private(set) var bytes = 0

    init(for targets: Set<UInt32>) {
        self.targets = targets
    }

    /// Adds one entry.
    ///
    /// Beyond the limits, the groups that need the most begin anew: all groups of the container for
    /// bytes and entries, and the groups of the user who has the most for pairs of entry and group.
    ///
    /// - Throws: `DearChange` if matching takes too many steps.
    mutating func add(
        _ entry: FollowedEntry, in container: LiveContainer, _ settings: LiveSettings
    ) throws(DearChange) {
        guard tooFar.count < targets.count else { return }
        let found: RecordChange?
        do { found = try logged(entry) } catch { return giveUp() }
        guard let change = found else { return }
        if change.forgetsType { forgotten[change.recordType] = entry.position }
        let tableKey = LiveContainer.tableKey(of: change)
        let isAwaited = isAwaited(tableKey, in: container)
        guard isAwaited || container.changeGroups > 0 else { return }
        // Nothing is noted before all matching is done, because the attempt may be repeated.
        let heard = try container.groups(toldOf: change, appendedAt: entry.appendedAt)
            .filter { isWanted($0.group.number) }
        // Other entries are not kept, so they do not count.
        guard isAwaited || !heard.isEmpty else { return }
        let bytes = self.bytes + entry.memoryBytes
        guard bytes <= settings.bytesPerResume, entries.count < settings.entriesPerResume
        else { return giveUp() }
        var past = PastEntry(entry: entry, change: change)
        if isAwaited, let record = change.keptBefore(at: entry.appendedAt) {
            let record = container.granted(record, on: tableKey)
            past.before = Set(try container.results(of: record, on: tableKey).filter(isWanted))
            if record.isForSome { named[tableKey] = entry.position }
        }
        self.bytes = bytes
        let index = entries.count
        for hearing in heard {
            told[hearing.group.number, default: []].append(index)
            past.transitions[hearing.group.number] = hearing.transition
            weigh(hearing.group)
        }
        if isAwaited {
            for number in past.before {
                members[number, default: []].insert(change.recordID)
                if let group = container.groups[number] { weigh(group) }
            }
            touches[tableKey, default: [:]][change.recordID, default: []].append(index)
        }
        entries.append(past)
        if weight > settings.toldPerResume { forgetMost(in: container) }
    }

    /// Makes all groups begin anew, because one of the entries is missing.
    mutating func giveUp() { forget(targets) }

    /// Returns why a group cannot be resumed from a position, as far as the entries say.
    func reset(of group: LiveGroup, since: LogPosition) -> LiveReset? {
        if tooFar.contains(group.number) { return .tooFar }
        guard group.query.kind == .result, let type = group.query.recordType,
            let end = forgotten[type], end > since
        else { return nil }
        return .changed
    }

    /// Returns the joint effect of some entries on a record.
    ///
    /// - Parameters:
    ///   - indices: The indices of the record's entries, ascending.
    ///   - earlier: The record before them; `nil` if there was none.
    ///   - reader: The reader whose own result it is, if it belongs to one.
    /// - Returns: The reasons for which the record enters or leaves.
    func fate(
        of indices: ArraySlice<Int>, from earlier: LiveRecord?, for reader: LiveReader?
    ) -> LiveFate {
        let couldRead = reader?.isAmong(earlier?.readers) ?? true
        var coming: LiveItem.Reason = couldRead ? .entered : .readable
        var isThere = earlier != nil
        for index in indices {
            let change = entries[index].change
            switch change.operation {
            case .create where !isThere: coming = change.isSnapshot ? .loaded : .created
            case .create, .update: break
            case .delete: coming = .entered
            }
            isThere = change.operation != .delete
        }
        guard let last = indices.last else { return .entered }
        let change = entries[last].change
        if change.operation == .delete {
            return LiveFate(coming: coming, going: change.isSnapshot ? .forgotten : .deleted)
        }
        let canRead = reader?.isAmong(change.readers) ?? true
        let fate = LiveFate(coming: coming, going: canRead ? .left : .unreadable)
        guard reader == nil, let earlier else { return fate }
        return fate.shared(from: earlier.readers, to: change.readers)
    }

    private func logged(_ entry: FollowedEntry) throws -> RecordChange? {
        guard case .change(let logged, let isStale) = entry.body, !isStale else { return nil }
        return try logged.change()
    }

    private mutating func isAwaited(
        _ table: LiveContainer.TableKey, in container: LiveContainer
    ) -> Bool {
        if let known = awaited[table] { return known }
        let isAwaited = container.results(on: table).contains { isWanted($0.number) }
        awaited[table] = isAwaited
        return isAwaited
    }

    private func isWanted(_ group: UInt32) -> Bool {
        targets.contains(group) && !tooFar.contains(group)
    }

    private mutating func weigh(_ group: LiveGroup) {
        weight += 1
        weights[group.owner, default: 0] += 1
    }

    private mutating func forgetMost(in container: LiveContainer) {
        guard let most = weights.max(by: { $0.value < $1.value }) else { return }
        weight -= most.value
        weights[most.key] = nil
        forget(targets.filter { container.groups[$0]?.owner == most.key })
    }

    private mutating func forget(_ groups: Set<UInt32>) {
        tooFar.formUnion(groups)
        for group in groups {
            told[group] = nil
            members[group] = nil
        }
        guard tooFar.count == targets.count else { return }
        (entries, touches, bytes) = ([], [:], 0)
    }
}

/// What has been read of the log for returning clients.
struct PastReading {
    var past: [ContainerKey: PastChanges] = [:]
    /// The position up to which everything has been read.
    var at: LogPosition
    /// The first entry from which on nothing is missing.
    var first: LogPosition?
    var count = 0
    /// How often each container was left for another reading since its last turn.
    private(set) var postponed: [ContainerKey: Int]

    init(after start: LogPosition, postponed: [ContainerKey: Int] = [:]) {
        at = start
        self.postponed = postponed
    }

    /// Notes the next entry.
    ///
    /// Positions have no gaps, so entries missing before it have been pruned, perhaps during the
    /// reading.
    mutating func note(next: LogPosition) {
        if first == nil || next > at.next { first = next }
    }

    /// Skips an entry that cannot be read; if it is a change, clients from before it begin anew.
    mutating func skip(_ entry: UnreadableEntry) {
        note(next: entry.position)
        if entry.isChange { first = entry.position.next }
        at = entry.position
    }

    /// Leaves containers for another reading while all together have more than `most` bytes; one
    /// container always remains.
    ///
    /// Containers that were left out least often go first, and of these the largest. Otherwise the
    /// largest could be left out for ever while others keep coming back.
    mutating func postpone(beyond most: Int) {
        var bytes = past.values.reduce(0) { $0 + $1.bytes }
        while bytes > most, past.count > 1,
            let next = past.keys.min(by: { goesBefore($0, $1) })
        {
            bytes -= past.removeValue(forKey: next)?.bytes ?? 0
            postponed[next, default: 0] += 1
        }
    }

    private func goesBefore(_ one: ContainerKey, _ other: ContainerKey) -> Bool {
        let times = (postponed[one, default: 0], postponed[other, default: 0])
        guard times.0 == times.1 else { return times.0 < times.1 }
        return past[one]?.bytes ?? 0 > past[other]?.bytes ?? 0
    }
}

/// The frames for clients that come back to one group, made once for all of the same position.
struct Telling {
    private let group: LiveGroup
    private let past: PastChanges
    /// The position up to which clients are told.
    private let end: LogPosition
    private let frame: (PastEntry) -> LiveGroupFrame
    private var frames: [Int: LiveGroupFrame] = [:]
    private var items: [LogPosition: [LiveItem]] = [:]
    private var shared: [LogPosition: LiveFrame] = [:]
    private var written = WrittenRecords()
    /// The bytes of what has been written.
    private(set) var bytes = 0

    init(
        _ group: LiveGroup, _ past: PastChanges, upTo end: LogPosition,
        frame: @escaping (PastEntry) -> LiveGroupFrame
    ) {
        self.group = group
        self.past = past
        self.end = end
        self.frame = frame
    }

    /// Returns the changes that the group is sent, after a position.
    mutating func changes(since: LogPosition) -> [LiveGroupFrame] {
        let told = past.told[group.number] ?? []
        let first = told.partitioningIndex { past.entries[$0].position > since }
        let last = told.partitioningIndex { past.entries[$0].position > end }
        var indices = Array(told[first..<max(first, last)])
        if group.query.coalesces {
            var seen: Set<RecordID> = []
            indices = indices.reversed()
                .filter { seen.insert(past.entries[$0].change.recordID).inserted }.reversed()
        }
        return indices.map { index in
            if let known = frames[index] { return known }
            let made = frame(past.entries[index])
            frames[index] = made
            bytes += made.bytes
            return made
        }
    }

    /// Returns whether the clients at a position may have been shown different results within the
    /// limit, although all are shown the same now; then there is no difference that holds for all.
    ///
    /// Any record of the type counts, because the answer reveals whether there was one.
    func wasPersonal(since: LogPosition) -> Bool {
        guard group.reader == nil, group.traits.isLimited,
            let tableKey = LiveContainer.tableKey(of: group.query),
            let last = past.named[tableKey]
        else { return false }
        return last > since
    }

    /// Returns the frame with what has changed in the group's result since a position, for one
    /// reader.
    ///
    /// It is written once for all if it does not depend on the reader.
    mutating func items(
        since: LogPosition, for reader: LiveReader, by writer: FrameWriter
    ) -> LiveFrame? {
        if let known = shared[since] { return known }
        let items = items(since: since)
        let frame = writer.items(
            LiveItems(group.readable(items, for: reader)), of: group.content, as: group.traits,
            group.number, &written)
        bytes += frame?.count ?? 0
        let isForAll =
            group.reader != nil
            || items.allSatisfy {
                !$0.record.isForSome && !($0.before?.isForSome ?? false) && $0.others == nil
            }
        if isForAll { shared[since] = frame }
        return frame
    }

    private mutating func items(since: LogPosition) -> [LiveItem] {
        if let known = items[since] { return known }
        let found = difference(since: since)
        items[since] = found
        return found
    }

    private mutating func difference(since: LogPosition) -> [LiveItem] {
        guard let tableKey = LiveContainer.tableKey(of: group.query), let members = group.members
        else { return [] }
        var touched: [RecordID: LiveRecord?] = [:]
        var fates: [RecordID: LiveFate] = [:]
        let touches = past.touches[tableKey] ?? [:]
        let now = members.all.lazy.map(\.record).filter { $0.record.position > since }.map(\.id)
        for id in (past.members[group.number] ?? []).union(now) {
            let indices = touches[id] ?? []
            let first = indices.partitioningIndex { past.entries[$0].position > since }
            let last = indices.partitioningIndex { past.entries[$0].position > end }
            guard first < last else { continue }
            let touch = past.entries[indices[first]]
            let earlier = touch.change.keptBefore(at: touch.entry.appendedAt)
                .map(group.granted)
            let wasMember = touch.before.contains(group.number)
            touched.updateValue(wasMember ? earlier : nil, forKey: id)
            fates[id] = past.fate(of: indices[first..<last], from: earlier, for: group.reader)
        }
        return members.difference(since: touched, fates, showing: group.query.desiredKeys)
    }
}

extension Array {
    /// Returns the first index whose element fits, given that all later elements fit, too; the end
    /// if none fits.
    ///
    /// - Complexity: Logarithmic in the length.
    func partitioningIndex(where fits: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if fits(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
