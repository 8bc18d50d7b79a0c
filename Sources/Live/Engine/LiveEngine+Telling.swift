import Logging
import Matching
import RelayModel
import Storage

extension LiveEngine {
    // MARK: Items

    /// Returns the frame for effects on a group's result, in which each member gets what it may
    /// read.
    func told(
        _ items: LiveItems, of group: LiveGroup, by origin: ChangeOrigin?
    ) -> LiveGroupFrame? {
        let items = group.reader == nil ? items : items.ofOwn
        guard let first = items.all.first else { return nil }
        let number = group.number
        func frame(_ items: LiveItems) -> LiveFrame? {
            writer.items(
                items, of: group.content, as: group.traits, number, by: origin, &written)
        }
        var told = LiveGroupFrame(number, first.isSilent ? nil : frame(items))
        guard group.reader == nil else { return told }
        let (before, after) = first.readers
        told.narrow(to: after, before: before)
        guard told.readers != nil || told.readersBefore != nil else {
            return first.isSilent ? nil : told
        }
        guard first.operation == .changed || first.others != nil else { return told }
        if first.operation != .removed { told.entered = frame(LiveItems([first.whereEntered])) }
        if first.operation != .added { told.left = frame(LiveItems([first.whereLeft])) }
        return told
    }

    // MARK: Changes

    /// Returns the frame for a change, as the members of a group get it.
    func frame(
        of change: RecordChange, _ entry: FollowedEntry, for group: LiveGroup,
        _ transition: LiveTransition?
    ) -> LiveGroupFrame {
        func frame(showsBefore: Bool) -> LiveFrame? {
            // Whether the record fitted before would reveal what it was before.
            let shown = showsBefore ? transition : transition.map { _ in .unknown }
            return writer.change(
                change, at: entry.position, appendedAt: entry.appendedAt, of: group.query,
                group.number, shown, showsBefore: showsBefore)
        }
        var told = LiveGroupFrame(group.number, frame(showsBefore: true))
        let readers = group.readers(of: change)
        told.narrow(to: readers, before: change.readersBefore ?? readers)
        // A rule on both images would reveal to new readers what was there before.
        if told.readersBefore != nil, !group.query.subscription.narrowsUpdates {
            told.entered = frame(showsBefore: false)
        }
        let suppression = group.query.subscription.suppress
        if suppression != .none {
            told.suppressed = LiveGroupFrame.Suppressed(
                suppression: suppression, origin: change.origin)
        }
        return told
    }

    // MARK: Results

    /// Returns what a query is sent first: the result, if it asks for one.
    func beginning(of group: LiveGroup, for waiter: LiveWaiter) -> LiveResult? {
        let query = clients[waiter.client]?.queries[waiter.query]?.query
        let isAsked = waiter.isAnew || query?.beginning == .current
        return isAsked ? result(of: group, for: waiter) : nil
    }

    /// Returns the result as one reader sees it.
    func result(of group: LiveGroup, for waiter: LiveWaiter) -> LiveResult? {
        guard let reader = clients[waiter.client]?.reader else { return nil }
        let result = LiveResult(
            group.shownRecords(), of: group.content, group.number,
            for: group.reader == nil ? reader : nil, by: writer)
        return waiter.getID.map(result.got) ?? result
    }

    // MARK: Bounds

    /// Ends the results that have become too large.
    func bound(_ groups: [LiveGroup], in container: LiveContainer) {
        // A group may have been dropped to make room for another one.
        for group in groups where group.isFiled {
            if let excess = excess(of: group) {
                end(group, excess, in: container)
            } else {
                _ = makeRoom(for: group, in: container)
            }
        }
        looked.removeAll()
    }

    /// Adds the growth of a group's members to its memory, its container's and the total.
    func weigh(_ group: LiveGroup, _ growth: Int, in container: LiveContainer) {
        group.bytes += growth
        container.memory += growth
        memory += growth
    }

    /// Returns the error of a result that is too large by itself; `nil` if it is not.
    func excess(of group: LiveGroup) -> APIError? {
        excess(of: group, records: group.members?.all.count ?? 0, bytes: group.bytes)
    }

    /// Returns the error of a result that would be too large with so many members and bytes.
    func excess(of group: LiveGroup, records: Int, bytes: Int) -> APIError? {
        let isLimited = group.traits.isLimited
        let most = isLimited ? settings.membersPerWindow : settings.recordsPerResult
        if records > most {
            return .tooManyMatches("more than \(most) records match")
        }
        guard !isLimited, bytes > settings.bytesPerResult else { return nil }
        return .tooManyMatches(
            "the matching records take more than \(settings.bytesPerResult) bytes")
    }

    /// Asks the indexes of a container about a change.
    ///
    /// Groups whose conditions take too many steps for one change end, and the question is repeated
    /// for the others.
    ///
    /// - Parameters:
    ///   - container: The container whose indexes are asked.
    ///   - ask: Asks the question.
    ///   - asked: Returns the groups whose conditions may be judged: those of users who may read
    ///     the record.
    /// - Returns: The answer; `nil` if every attempt took too many steps.
    func asking<Answer>(
        in container: LiveContainer, _ ask: () throws(DearChange) -> Answer,
        of asked: () -> [LiveGroup]
    ) -> Answer? {
        let began = elapsed()
        container.mostSteps = mostSteps(of: container, at: began)
        defer {
            let now = elapsed()
            container.judging.note(now - began, at: now)
        }
        for left in (0..<LiveSettings.questionsPerChange).reversed() {
            do throws(DearChange) {
                return try ask()
            } catch {
                // The texts take as long for the other conditions, so ending groups would not help.
                guard !error.isOfTexts else { return nil }
                end(error, of: asked(), isWhole: left == 1, in: container)
            }
        }
        return nil
    }

    /// Returns the steps that the conditions of a container may take for the next change.
    ///
    /// If other containers have clients, a container must not keep them waiting, not even by texts
    /// that take long to read. Such texts are read completely if no other container waits.
    private func mostSteps(of container: LiveContainer, at now: Duration) -> Int {
        guard containers.count > 1 else { return settings.stepsPerChange }
        let owesMuch = container.judging.owed(at: now) > settings.mostJudgingOwed
        let most = owesMuch ? LiveSettings.stepsOfDebtor : LiveSettings.stepsBesideOthers
        return min(settings.stepsPerChange, most)
    }

    /// Ends the groups whose conditions took too many steps for one change.
    ///
    /// If no single condition took many, but all of them together did, all groups of the user with
    /// the most groups end. Before the last attempt, all groups of the user to blame end, because
    /// otherwise everybody's groups would.
    private func end(
        _ dear: DearChange, of asked: [LiveGroup], isWhole: Bool, in container: LiveContainer
    ) {
        let owner = { (serial: UInt64) -> UserID? in
            container.groups[UInt32(truncatingIfNeeded: serial)]?.owner
        }
        var blamed = dear.blamed(by: owner)
        if blamed.isEmpty || isWhole {
            let user = blamed.first.flatMap(owner) ?? asked.map(\.owner).mostNamed
            blamed += asked.filter { $0.owner == user }.map { UInt64($0.number) }
        }
        end(dear: blamed, in: container)
    }

    /// Logs what could not be read, and why; the number of lines is limited, because all returning
    /// clients ask again.
    func say(_ error: any Error, reading what: String) {
        guard let unlogged = lines.take("reading \(what)", at: elapsed()) else { return }
        logger.error(
            "could not read \(what)",
            metadata: ["reason": "\(error)", "unloggedBefore": .stringConvertible(unlogged)])
    }

    /// Ends groups because their conditions took too many steps for one change.
    func end(dear serials: [UInt64], in container: LiveContainer) {
        guard !serials.isEmpty else { return }
        // Clients that make changes and declare queries again could cause this at any rate.
        if let unlogged = lines.take("\(container.key) dear", at: elapsed()) {
            logger.warning(
                "ended live queries whose conditions took too many steps",
                metadata: [
                    "container": "\(container.key)", "groups": .stringConvertible(serials.count),
                    "unloggedBefore": .stringConvertible(unlogged),
                ])
        }
        let numbers = serials.flatMap { serial in
            container.own.all(foundBy: UInt32(truncatingIfNeeded: serial))
        }
        for number in numbers {
            guard let group = container.groups[number] else { continue }
            end(
                group,
                APIError(
                    .quotaExceeded,
                    "evaluating the condition took more steps than are allowed for one change"),
                in: container)
        }
    }

    /// Ends groups that could not be judged for a change, because they would show a wrong state
    /// from now on, unnoticed.
    func end(unasked groups: [LiveGroup], in container: LiveContainer) {
        for group in groups where container.groups[group.number] === group {
            end(group, .unasked, in: container)
        }
    }

    /// Ends a group, and tells all of its clients why.
    func end(_ group: LiveGroup, _ error: APIError, in container: LiveContainer) {
        meter.count(gone: error)
        for (number, id) in queries(of: group) {
            guard let client = clients[number] else { continue }
            clients[number]?.queries[id]?.group = 0
            // No `at` frame closes this one, so a client at this position may not have received it.
            clients[number]?.queries[id]?.finished = position.next
            clients[number]?.waiting.removeWithRoom(id)
            let getID = LiveWaiter(client: number, query: id).getID
            if getID != nil { clients[number]?.queries[id] = nil }
            var object: JSONObject = ["type": getID == nil ? "gone" : "refused"]
            if getID == nil { object["group"] = .integer(Int64(group.number)) }
            object["id"] = .string(getID ?? id)
            object.members += error.json(uuid: "").members.filter { $0.name != "uuid" }
            client.hub.post([
                .leave(number, group.number), .send(number, [LiveFrame(object)]),
            ])
            finishIfComplete(number)
        }
        discard(group, in: container)
    }

    /// Returns the queries of clients that a group shows, including those that wait.
    func queries(of group: LiveGroup) -> [(client: UInt64, query: String)] {
        group.clients.union(group.waiting.map(\.client)).sorted().flatMap { number in
            (clients[number]?.queries ?? [:]).filter { $0.value.group == group.number }
                .map { (number, $0.key) }
        }
    }

    /// Removes a group.
    func discard(_ group: LiveGroup, in container: LiveContainer) {
        group.note(replaced: group.bytes)
        weigh(group, -group.bytes, in: container)
        looked[container.key]?.remove(group.number)
        container.remove(group)
        returning[container.key]?.remove(group.number)
        if container.groups.isEmpty { containers[container.key] = nil }
        meter.show(groups: containers.values.reduce(0) { $0 + $1.groups.count })
    }

    /// Divides the shared ordered results on a type, because not everybody may read all of its
    /// records any more.
    ///
    /// It is done before they are bounded, so that what a reader may not read does not count for
    /// them.
    func divideOrdered(on tableKey: LiveContainer.TableKey, in container: LiveContainer) {
        let groups = container.results(on: tableKey).sorted { $0.number < $1.number }
        // Those that are being read are divided once they have been.
        for group in groups
        where group.reader == nil && group.traits.isOrdered && group.members != nil {
            divide(group, in: container)
        }
    }

    /// Replaces a group by one for each of its readers: a record names readers, so what is shown
    /// within a limit depends on the reader.
    func divide(_ group: LiveGroup, in container: LiveContainer) {
        let queries = queries(of: group)
        note(.readers, of: group, queries: queries.count)
        discard(group, in: container)
        if containers[container.key] == nil { containers[container.key] = container }
        for (number, id) in queries {
            guard let client = clients[number], let declared = client.queries[id] else { continue }
            var waiter = LiveWaiter(client: number, query: id)
            let former = group.waiting.firstIndex(of: waiter).map { group.waiting[$0] }
            waiter.isAnew =
                group.clients.contains(number) || former?.isAnew == true || former?.since != nil
            // A one-time get has been shown nothing yet that could begin anew.
            if waiter.getID == nil {
                client.hub.post([
                    .leave(number, group.number),
                    .send(
                        number,
                        [FrameWriter.reset(group.number, .readers, from: nil, to: position)]),
                ])
            }
            join(waiter, declared.query, declared.grant, reader: client.reader, in: container)
        }
        // With its last group, the table may have been forgotten, and is a new one.
        if let tableKey = LiveContainer.tableKey(of: group.query) {
            container.tables[tableKey]?.namesReaders = true
        }
        // A group that nobody looks at any more is replaced by none.
        if container.groups.isEmpty { containers[container.key] = nil }
    }
}

extension Sequence<UserID> {
    /// The user who occurs most often.
    var mostNamed: UserID? {
        var counts: [UserID: Int] = [:]
        for user in self { counts[user, default: 0] += 1 }
        return counts.max {
            ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue)
        }?.key
    }
}

extension APIError {
    /// The error of queries that could not be judged because others took too many steps.
    static var unasked: APIError {
        APIError(
            .tryAgainLater,
            "evaluating other conditions, or decoding a record's texts, took more steps than are "
                + "allowed for one change",
            retryAfter: 1)
    }

    /// Returns the error of a query for which more records match than can be shown.
    static func tooManyMatches(_ reason: String) -> APIError {
        APIError(
            .quotaExceeded, "\(reason); narrow the condition or set a limit",
            details: ["liveError": "tooManyMatches"])
    }
}

extension LiveGroup {
    /// Returns the items that one reader may be sent: removed, added, changed, each in order.
    func readable(_ items: [LiveItem], for reader: LiveReader) -> [LiveItem] {
        let told = items.compactMap { readable($0, for: reader) }
        let operations: [LiveItem.Operation] = [.removed, .added, .changed]
        return operations.flatMap { operation in
            inOrder(told.filter { $0.operation == operation })
        }
    }

    /// Sorts items of one kind by the order of the result, if any record has become readable.
    ///
    /// Such an item was among the changed ones, and so comes after those that were added.
    private func inOrder(_ items: [LiveItem]) -> [LiveItem] {
        guard let order = members?.order, items.contains(where: { $0.reason == .readable }) else {
            return items
        }
        return items.map { (item: $0, member: order.member(of: $0.record)) }
            .sorted { order.precedes($0.member, $1.member) }.map(\.item)
    }

    /// Returns the item in the form that one reader may be sent; `nil` if it gets none.
    private func readable(_ item: LiveItem, for reader: LiveReader) -> LiveItem? {
        guard self.reader == nil else { return item.isSilent ? nil : item }
        let (before, after) = item.readers
        switch (reader.isAmong(before), reader.isAmong(after)) {
        case (true, true): return item.isSilent ? nil : item
        case (false, false): return nil
        case (false, true): return item.operation == .removed ? nil : item.whereEntered
        case (true, false): return item.operation == .added ? nil : item.whereLeft
        }
    }
}
