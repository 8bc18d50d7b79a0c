import Matching
import RelayModel
import Storage

extension LiveEngine {
    /// Reads the members of a result from the store, in its turn.
    ///
    /// All results on one type of record that wait are read together.
    func load(_ group: LiveGroup, in container: LiveContainer) {
        guard let tableKey = LiveContainer.tableKey(of: group.query) else { return }
        container.tables[tableKey]?.unread.insert(group.number)
        if container.tables[tableKey]?.loading == nil {
            waitingTables.append(tableKey, of: container.key)
        }
        beginReading()
    }

    private func beginReading() {
        while readings < settings.readings, let (key, tableKey) = waitingTables.next() {
            guard let container = containers[key], let table = container.tables[tableKey],
                table.loading == nil
            else { continue }
            let groups = table.unread.filter { container.groups[$0]?.members == nil }
            container.tables[tableKey]?.unread = []
            guard !groups.isEmpty else { continue }
            container.tables[tableKey]?.loading = LiveContainer.Loading(groups: groups)
            readings += 1
            Task { await self.read(tableKey, groups, of: container) }
        }
    }

    private func read(
        _ tableKey: LiveContainer.TableKey, _ groups: Set<UInt32>, of container: LiveContainer
    ) async {
        defer {
            readings -= 1
            beginReading()
        }
        // Wait until the log is followed: earlier changes would not be put aside for this reading.
        guard (try? await reach(.start)) != nil else {
            return give(up: groups, tableKey, in: container, .nobodyWaits)
        }
        let waiting = Waiting(
            groups.compactMap { container.groups[$0] }, in: container, seed: seed, settings)
        meter.countReading()
        do {
            var reading = try await self.reading(tableKey, waiting, for: groups, in: container)
            guard !reading.isGivenUp else {
                return give(up: groups, tableKey, in: container, .unasked)
            }
            guard reading.rows <= settings.rowsPerReading else {
                return give(
                    up: groups, tableKey, in: container,
                    .tooManyMatches(
                        "the relay keeps more than \(settings.rowsPerReading) records of "
                            + "\(tableKey.type), the most that one result may read"))
            }
            // What was read may be ahead of the position that has been followed to.
            try await reach(try await log.head())
            if reading.namesReaders { container.tables[tableKey]?.namesReaders = true }
            end(waiting.unheard.all, joinedSince: waiting.listeners, in: container)
            take(&reading.found, tableKey, groups, in: container)
        } catch {
            say(error, reading: "records")
            end(dear: waiting.dear.take(), in: container)
            give(
                up: groups, tableKey, in: container,
                APIError(.tryAgainLater, "the records cannot be read now", retryAfter: 5))
        }
    }

    /// Reads the records of a type in slices.
    ///
    /// A record that changes meanwhile is put aside by the code that follows the log.
    private func reading(
        _ tableKey: LiveContainer.TableKey, _ waiting: Waiting, for groups: Set<UInt32>,
        in container: LiveContainer
    ) async throws -> Reading {
        let place = container.place(of: tableKey)
        var reading = Reading()
        var weight = LoadWeight()
        var cursor: RecordID?
        repeat {
            let scan = RecordScan(of: tableKey.type, in: place, after: cursor)
            // Each slice has a value of its own; otherwise all earlier findings would be copied
            // each time.
            let slice = try await shadow.scanRecords(scan, into: Reading()) { reading, scanned in
                waiting.find(waiting.granted(scanned.record), in: place, &reading)
                return !reading.isGivenUp
            }
            reading.found += slice.value.found
            reading.isGivenUp = slice.value.isGivenUp
            if slice.value.namesReaders {
                reading.namesReaders = true
                container.tables[tableKey]?.namesReaders = true
            }
            reading.rows += slice.rows
            cursor = slice.cursor
            end(dear: waiting.dear.take(), in: container)
            container.close(waiting.unheard.take())
            for row in slice.value.found { weight.add(row.record, to: row.groups) }
            let gone = container.tables[tableKey]?.loading?.aside.count ?? 0
            let ended = endExcessive(&weight, gone: gone, in: container)
            waiting.leaveOut(ended)
            reading.forget(ended)
            // Stop if no result needs the reading any more, or if it has to begin anew anyway.
            let isWanted =
                groups.contains { container.groups[$0] != nil }
                && container.tables[tableKey]?.loading?.isTooFar != true
            guard isWanted, !reading.isGivenUp else { break }
        } while cursor != nil && reading.rows <= settings.rowsPerReading
        return reading
    }

    /// Ends results that could not be read.
    private func give(
        up groups: Set<UInt32>, _ tableKey: LiveContainer.TableKey, in container: LiveContainer,
        _ error: APIError
    ) {
        container.tables[tableKey]?.loading = nil
        for number in groups {
            guard let group = container.groups[number] else { continue }
            end(group, error, in: container)
        }
        readAgain(tableKey, of: container)
        container.forgetIfUnused(tableKey)
    }

    /// Has a table read again, for the results that were added during the reading.
    private func readAgain(_ tableKey: LiveContainer.TableKey, of container: LiveContainer) {
        guard container.tables[tableKey]?.unread.isEmpty == false else { return }
        waitingTables.append(tableKey, of: container.key)
    }

    /// Makes members of what was read, as of the engine's position.
    ///
    /// `found` is emptied on the way: the result numbers of a hundred thousand records take
    /// megabytes, and the members hold them by then.
    private func take(
        _ found: inout [Found], _ tableKey: LiveContainer.TableKey, _ groups: Set<UInt32>,
        in container: LiveContainer
    ) {
        guard let loading = container.tables[tableKey]?.loading else { return }
        container.tables[tableKey]?.loading = nil
        // All results that wanted the reading may be gone.
        defer { container.forgetIfUnused(tableKey) }
        let there = groups.filter { container.groups[$0] != nil }
        if loading.isTooFar {
            container.tables[tableKey]?.unread.formUnion(there)
            return readAgain(tableKey, of: container)
        }
        var members: [UInt32: [ResultMember]] = [:]
        var orders: [UInt32: ResultOrder] = [:]
        for number in there {
            orders[number] = container.groups[number].map { container.order(of: $0.query) }
        }
        func add(_ record: LiveRecord, to groups: [UInt32]) {
            // If another result shows the record already, its copy is up to date with the log.
            let record = container.tables[tableKey]?.records[record]?.record ?? record
            // Results that sort alike share one list of sort values.
            var step = RecordStep(from: nil, to: record)
            for number in groups {
                guard let order = orders[number], let member = step.sorted(by: order).later else {
                    continue
                }
                members[number, default: []].append(member)
            }
        }
        let changed = loading.aside
        var isAhead: Set<RecordID> = []
        for row in found {
            if let change = changed[row.record.id] {
                guard row.record.record.position >= change.position else { continue }
                isAhead.insert(row.record.id)
            }
            let record = container.granted(row.record, on: tableKey)
            add(
                record,
                to: record.readers == nil
                    ? row.groups : row.groups.filter { container.isReadable(record, $0) })
        }
        for (id, change) in changed where !isAhead.contains(id) {
            guard let record = change.record else { continue }
            let asked = asking(in: container) { () throws(DearChange) -> [UInt32] in
                try container.results(of: record, on: tableKey)
            } of: {
                container.heard(container.results(on: tableKey), by: record.readers)
            }
            guard let all = asked else {
                return give(up: there, tableKey, in: container, .unasked)
            }
            add(record, to: all.filter(there.contains))
        }
        // If the table grew step by step, all of its records would be in memory twice for a while.
        if let table = container.tables[tableKey] {
            let count = max(table.records.count, found.count)
            table.records.reserveCapacity(count)
        }
        found = []
        for (number, order) in orders.sorted(by: { $0.key < $1.key }) {
            // Each list is released once its members have been taken over, to save memory.
            let found = members.removeValue(forKey: number) ?? []
            fill(number, found, by: order, tableKey, container)
        }
        looked.removeAll()
        readAgain(tableKey, of: container)
        beginResuming()
    }

    private func fill(
        _ number: UInt32, _ found: [ResultMember], by order: ResultOrder,
        _ tableKey: LiveContainer.TableKey, _ container: LiveContainer
    ) {
        guard let group = container.groups[number] else { return }
        var members = ResultMembers(group.query, by: order)
        members.load(found)
        group.members = members
        for member in members.all {
            container.tables[tableKey]?.records.add(number, to: member.record)
        }
        weigh(group, members.all.reduce(0) { $0 + $1.record.bytes }, in: container)
        if group.reader == nil, group.query.isOrdered, container.namesReaders(group.query) {
            return divide(group, in: container)
        }
        if let excess = excess(of: group) { return end(group, excess, in: container) }
        guard makeRoom(for: group, in: container) else { return }
        for waiter in group.waiting where waiter.since == nil {
            welcome(waiter, group, [], beginning(of: group, for: waiter))
            finishIfComplete(waiter.client)
        }
    }
}
