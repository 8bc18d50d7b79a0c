import Logging
import Matching
import RelayModel
import Storage

extension LiveEngine {
    // MARK: Items

    /// What the members of a group are told of what was done to its result: each what it may read.
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
        let before = first.operation == .changed ? first.before : nil
        told.narrow(to: first.record.readers, before: (before ?? first.record).readers)
        guard told.readers != nil || told.readersBefore != nil else {
            return first.isSilent ? nil : told
        }
        guard before != nil else { return told }
        told.entered = frame(LiveItems([first.whereEntered]))
        told.left = frame(LiveItems([first.whereLeft]))
        return told
    }

    // MARK: Changes

    /// What the members of a group are told of a change.
    func frame(
        of change: RecordChange, _ entry: FollowedEntry, for group: LiveGroup,
        _ transition: LiveTransition?
    ) -> LiveGroupFrame {
        func frame(showsBefore: Bool) -> LiveFrame? {
            // Whether it fitted before says what was there before.
            let shown = showsBefore ? transition : transition.map { _ in .unknown }
            return writer.change(
                change, at: entry.position, appendedAt: entry.appendedAt, of: group.query,
                group.number, shown, showsBefore: showsBefore)
        }
        var told = LiveGroupFrame(group.number, frame(showsBefore: true))
        let readers = group.readers(of: change)
        told.narrow(to: readers, before: change.readersBefore ?? readers)
        // By a rule on both images nobody may learn what was there before.
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

    /// What a query is told first: the result, if it asks for one.
    func beginning(of group: LiveGroup, for waiter: LiveWaiter) -> LiveResult? {
        let query = clients[waiter.client]?.queries[waiter.query]?.query
        let isAsked = waiter.isAnew || query?.beginning == .current
        return isAsked ? result(of: group, for: waiter) : nil
    }

    /// The result as one reader sees it.
    func result(of group: LiveGroup, for waiter: LiveWaiter) -> LiveResult? {
        guard let reader = clients[waiter.client]?.reader else { return nil }
        let result = LiveResult(
            group.shownRecords(), of: group.content, group.number,
            for: group.reader == nil ? reader : nil, by: writer)
        return waiter.getID.map(result.got) ?? result
    }

    // MARK: Bounds

    /// Ends the results that have become too large, and makes those everybody's own in which who
    /// looks decides.
    func bound(_ groups: [LiveGroup], _ later: LiveRecord?, in container: LiveContainer) {
        // Readers may be many, and groups too.
        let isForSome = later?.isForSome ?? false
        // One may have gone to make room for another.
        for group in groups where group.isFiled {
            if let excess = excess(of: group) {
                end(group, excess, in: container)
            } else if makeRoom(for: group, in: container), group.reader == nil, isForSome,
                group.traits.isOrdered
            {
                divide(group, in: container)
            }
        }
        looked.removeAll()
    }

    /// Counts what a group's members take in memory, for it, its container, and all.
    func weigh(_ group: LiveGroup, _ growth: Int, in container: LiveContainer) {
        group.bytes += growth
        container.memory += growth
        memory += growth
    }

    /// Why a result is too large by itself, if it is.
    func excess(of group: LiveGroup) -> APIError? {
        excess(of: group, records: group.members?.all.count ?? 0, bytes: group.bytes)
    }

    /// Why a result is too large by itself that has so many members, if it is.
    func excess(of group: LiveGroup, records: Int, bytes: Int) -> APIError? {
        let isLimited = group.traits.isLimited
        let most = isLimited ? settings.membersPerWindow : settings.recordsPerResult
        if records > most {
            return .tooManyMatches("more than \(most) records fit")
        }
        guard !isLimited, bytes > settings.bytesPerResult else { return nil }
        return .tooManyMatches(
            "the records that fit have more than "
                + "\(settings.bytesPerResult) bytes")
    }

    /// Asks the indexes of a container about a change.
    ///
    /// Those whose conditions take more than it may take end, and it is asked again for the others.
    ///
    /// - Parameters:
    ///   - container: whose indexes are asked.
    ///   - ask: asks.
    ///   - asked: the groups whose conditions they are.
    /// - Returns: `nil` if it took too much each time.
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
                // Texts take as long whoever asks for them.
                guard !error.isOfTexts else { return nil }
                end(error, of: asked(), isWhole: left == 1, in: container)
            }
        }
        return nil
    }

    /// What the conditions of a container may take of the next change.
    ///
    /// Where others are connected, a container is not to keep them waiting: nor by texts that take
    /// long to be read, which are read whole where nobody else waits.
    private func mostSteps(of container: LiveContainer, at now: Duration) -> Int {
        guard containers.count > 1 else { return settings.stepsPerChange }
        let owesMuch = container.judging.owed(at: now) > settings.mostJudgingOwed
        let most = owesMuch ? LiveSettings.stepsOfDebtor : LiveSettings.stepsBesideOthers
        return min(settings.stepsPerChange, most)
    }

    /// Ends the groups whose conditions took more than one change may take.
    ///
    /// Where none took much, and all of them do, all groups of whoever has most of them end; and
    /// before the last question all of who is to blame, because without that everybody's would.
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

    /// Says what could not be read, and why, once in a while: all who come back ask anew.
    func say(_ error: any Error, reading what: String) {
        guard let unlogged = lines.take("reading \(what)", at: elapsed()) else { return }
        logger.error(
            "could not read \(what)",
            metadata: ["reason": "\(error)", "unloggedBefore": .stringConvertible(unlogged)])
    }

    /// Ends groups because their conditions took more than one change may take.
    func end(dear serials: [UInt64], in container: LiveContainer) {
        guard !serials.isEmpty else { return }
        // Who makes changes and asks again has them end as often as they like.
        if let unlogged = lines.take("\(container.key) dear", at: elapsed()) {
            logger.warning(
                "ended live queries whose conditions took too much",
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
                    .quotaExceeded, "the condition took more steps than one change may take"),
                in: container)
        }
    }

    /// Ends groups that could not be asked about a change: what they show would be wrong from now
    /// on, and nobody would know.
    func end(unasked groups: [LiveGroup], in container: LiveContainer) {
        for group in groups where container.groups[group.number] === group {
            end(group, .unasked, in: container)
        }
    }

    /// Ends a group, and tells all who see it why.
    func end(_ group: LiveGroup, _ error: APIError, in container: LiveContainer) {
        meter.count(gone: error)
        for (number, id) in queries(of: group) {
            guard let client = clients[number] else { continue }
            clients[number]?.queries[id]?.group = 0
            // Nothing closes it: who stands here may not have heard it.
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

    /// The queries of clients that a group shows.
    func queries(of group: LiveGroup) -> [(client: UInt64, query: String)] {
        group.clients.union(group.waiting.map(\.client)).sorted().flatMap { number in
            (clients[number]?.queries ?? [:]).filter { $0.value.group == group.number }
                .map { (number, $0.key) }
        }
    }

    /// Forgets a group.
    func discard(_ group: LiveGroup, in container: LiveContainer) {
        group.note(replaced: group.bytes)
        weigh(group, -group.bytes, in: container)
        looked[container.key]?.remove(group.number)
        container.remove(group)
        returning[container.key]?.remove(group.number)
        if container.groups.isEmpty { containers[container.key] = nil }
        meter.show(groups: containers.values.reduce(0) { $0 + $1.groups.count })
    }

    /// Gives each of a group's clients a result of its own: a record names readers, so that what is
    /// shown within a limit depends on who looks.
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
            // Of what is got once nothing was shown yet that could begin anew.
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
    }
}

extension Sequence<UserID> {
    /// Who is named most often.
    var mostNamed: UserID? {
        var counts: [UserID: Int] = [:]
        for user in self { counts[user, default: 0] += 1 }
        return counts.max {
            ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue)
        }?.key
    }
}

extension APIError {
    /// The conditions of others took so much that these could not be asked.
    static var unasked: APIError {
        APIError(
            .tryAgainLater,
            "other conditions, or the texts of a record, took more than one change may take",
            retryAfter: 1)
    }

    /// More records fit a query than can be shown.
    static func tooManyMatches(_ reason: String) -> APIError {
        APIError(
            .quotaExceeded, "\(reason); ask for fewer by the condition, or with a limit",
            details: ["liveError": "tooManyMatches"])
    }
}

extension LiveGroup {
    /// Items as one reader may be told of them: removed, added, changed, each in order.
    func readable(_ items: [LiveItem], for reader: LiveReader) -> [LiveItem] {
        let told = items.compactMap { readable($0, for: reader) }
        let operations: [LiveItem.Operation] = [.removed, .added, .changed]
        return operations.flatMap { operation in
            inOrder(told.filter { $0.operation == operation })
        }
    }

    /// Items of one kind, in the order of the result: what a reader sees now was there already, and
    /// stands behind what has come.
    private func inOrder(_ items: [LiveItem]) -> [LiveItem] {
        guard let order = members?.order, items.contains(where: { $0.reason == .readable }) else {
            return items
        }
        return items.map { (item: $0, member: order.member(of: $0.record)) }
            .sorted { order.precedes($0.member, $1.member) }.map(\.item)
    }

    /// An item as one reader may be told of it.
    private func readable(_ item: LiveItem, for reader: LiveReader) -> LiveItem? {
        guard self.reader == nil else { return item.isSilent ? nil : item }
        let reads = reader.isAmong(item.record.readers)
        guard item.operation == .changed, let before = item.before else {
            return reads ? item : nil
        }
        switch (reader.isAmong(before.readers), reads) {
        case (true, true): return item.isSilent ? nil : item
        case (false, false): return nil
        case (false, true): return item.whereEntered
        case (true, false): return item.whereLeft
        }
    }
}
