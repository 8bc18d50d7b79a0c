import RelayModel

extension LiveEngine {
    /// Finds room among the members of all results for one result that was loaded or has grown.
    ///
    /// Unused results go first. Then the largest results go of the reader who has more than twice
    /// as much as one of this result's readers. If there is no such reader, this result goes. So
    /// clients that ask for little do not pay for those that ask for much.
    ///
    /// - Returns: Whether the result stays.
    func makeRoom(for group: LiveGroup, in container: LiveContainer) -> Bool {
        // This is called for each result that a change moves.
        if !looked.isEmpty {
            looked[container.key]?.add(group.number, group.bytes, for: readers(of: group))
        }
        guard lacksRoom(beside: container) else { return true }
        guard !group.isIdle else {
            discard(group, in: container)
            return false
        }
        let own = readers(of: group)
        // A container is inspected when it is found short, because two may have the same size.
        while let (place, error) = shortage(beside: container) {
            guard looked[place.key] != nil else {
                look(into: place)
                continue
            }
            let others = place === container ? own : []
            let number = looked[place.key]?.takeLargest(beside: others, sparing: group.number)
            guard let number else { break }
            if let other = place.groups[number] { end(other, error, in: place) }
        }
        guard let rest = shortage(beside: container) else { return true }
        end(group, rest.error, in: container)
        return false
    }

    /// Adds up which readers have how much of a container's results, and discards unused results.
    private func look(into place: LiveContainer) {
        let idle = place.groups.values.filter { $0.isIdle && $0.bytes > 0 }
        for other in idle { discard(other, in: place) }
        var shares = ResultShares()
        for other in place.groups.values where other.bytes > 0 {
            shares.add(other.number, other.bytes, for: readers(of: other))
        }
        looked[place.key] = shares
    }

    /// Returns whether there is no room for results.
    private func lacksRoom(beside container: LiveContainer) -> Bool {
        container.memory > settings.memory / 2 || memory > settings.memory
    }

    /// Returns why there is no room for results, and the container in which to make some; `nil` if
    /// there is room.
    private func shortage(
        beside container: LiveContainer
    ) -> (place: LiveContainer, error: APIError)? {
        if container.memory > settings.memory / 2 {
            let error = APIError.tooManyMatches(
                "the results of the container's clients take more than \(settings.memory / 2) "
                    + "bytes of memory")
            return (container, error)
        }
        guard memory > settings.memory else { return nil }
        let fullest = containers.values.max { $0.memory < $1.memory } ?? container
        let isOther = fullest.memory > 2 * container.memory
        let error = APIError.tooManyMatches(
            "the results of all clients take more than \(settings.memory) bytes of memory")
        return (isOther ? fullest : container, error)
    }

    /// Returns some of the readers who see a result or wait for it, up to the number that is told
    /// apart.
    private func readers(of group: LiveGroup) -> Set<LiveReader> {
        if let reader = group.reader, !group.isIdle { return [reader] }
        // One reader may have many of these clients.
        let most = 4 * ResultShares.mostReaders
        let numbers = Array(group.clients.prefix(most)) + group.waiting.prefix(most).map(\.client)
        var readers: Set<LiveReader> = []
        for number in numbers where readers.count < ResultShares.mostReaders {
            if let reader = clients[number]?.reader { readers.insert(reader) }
        }
        return readers
    }

    /// Refuses queries with which one user's queries would take more memory than is allowed,
    /// whatever they show.
    ///
    /// - Throws: 413.
    func checkRoom(for queries: [DeclaredQuery], of client: LiveClient) throws(APIError) {
        guard case .user(let user) = client.reader else { return }
        let most = settings.queryBytesPerUser
        let container = containers[client.container]
        let there = container?.ownBytes[user] ?? 0
        let asked = queries.filter { $0.query.kind != .notifications }
        // This nearly always suffices, without a look at the existing groups.
        guard asked.reduce(there, { $0 + $1.query.ownBytes }) > most else { return }
        let new = asked.filter { container?.shows($0.query, to: client.reader) != true }
        guard !new.isEmpty, new.reduce(there, { $0 + $1.query.ownBytes }) > most else { return }
        throw APIError(
            .quotaExceeded,
            "the different queries of one user may take at most \(most) bytes; each counts 2048 "
                + "bytes, its text and the memory of its condition, and recent queries still count "
                + "for a while")
    }

    /// Ends the results for which a reading has found more than is allowed.
    ///
    /// At the end of the reading it would be too late, because everything is in memory by then. Up
    /// to `gone` of the found records may no longer be members, because they have changed since.
    ///
    /// - Returns: The results for which nothing more is to be kept; `weight` no longer counts them.
    func endExcessive(
        _ weight: inout LoadWeight, gone: Int, in container: LiveContainer
    ) -> Set<UInt32> {
        var ended: Set<UInt32> = []
        for number in weight.takeGrown() {
            guard let group = container.groups[number] else {
                ended.insert(number)
                continue
            }
            let records = max(0, weight.records(of: number) - gone)
            let bytes = gone == 0 ? weight.bytes(of: number) : 0
            guard let excess = excess(of: group, records: records, bytes: bytes) else { continue }
            // For each of its readers alone, only what they may read counts.
            if group.reader == nil, group.traits.isOrdered, container.namesReaders(group.query) {
                divide(group, in: container)
            } else {
                end(group, excess, in: container)
            }
            ended.insert(number)
        }
        for number in ended { weight.forget(number) }
        let most = settings.memory / 2
        guard weight.bytes > most else { return ended }
        var shares = ResultShares()
        for number in weight.groups {
            if let group = container.groups[number], !group.isIdle {
                shares.add(number, weight.bytes(of: number), for: readers(of: group))
                continue
            }
            if let group = container.groups[number] { discard(group, in: container) }
            weight.forget(number)
            ended.insert(number)
        }
        while weight.bytes > most, let number = shares.takeLargest() {
            weight.forget(number)
            ended.insert(number)
            guard let group = container.groups[number] else { continue }
            end(
                group,
                .tooManyMatches(
                    "the records read for the container's clients take more than \(most) bytes"),
                in: container)
        }
        return ended
    }
}
