import RelayModel

extension LiveEngine {
    /// Finds room among the members of all results for one that has come, or grown.
    ///
    /// What nobody needs goes first, then the largest results of whoever has more than twice as
    /// much as one of those who see this one, and if nobody has, this one: who asks for little pays
    /// for nobody who asks for much.
    ///
    /// - Returns: whether it stays.
    func makeRoom(for group: LiveGroup, in container: LiveContainer) -> Bool {
        // Asked for each result that a change moves.
        if !looked.isEmpty {
            looked[container.key]?.add(group.number, group.bytes, for: readers(of: group))
        }
        guard lacksRoom(beside: container) else { return true }
        guard !group.isIdle else {
            discard(group, in: container)
            return false
        }
        let own = readers(of: group)
        // In one container after the other: two may have as much.
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

    /// Notes who has how much of a container's results, without those that nobody needs.
    private func look(into place: LiveContainer) {
        let idle = place.groups.values.filter { $0.isIdle && $0.bytes > 0 }
        for other in idle { discard(other, in: place) }
        var shares = ResultShares()
        for other in place.groups.values where other.bytes > 0 {
            shares.add(other.number, other.bytes, for: readers(of: other))
        }
        looked[place.key] = shares
    }

    /// Whether there is no room for results.
    private func lacksRoom(beside container: LiveContainer) -> Bool {
        container.memory > settings.memory / 2 || memory > settings.memory
    }

    /// Why there is no room for results, and in which container it is to be found; `nil` if there
    /// is some.
    private func shortage(
        beside container: LiveContainer
    ) -> (place: LiveContainer, error: APIError)? {
        if container.memory > settings.memory / 2 {
            let error = APIError.tooManyMatches(
                "the results of the container's clients have more than "
                    + "\(settings.memory / 2) bytes in memory")
            return (container, error)
        }
        guard memory > settings.memory else { return nil }
        let fullest = containers.values.max { $0.memory < $1.memory } ?? container
        let isOther = fullest.memory > 2 * container.memory
        let error = APIError.tooManyMatches(
            "the results of all clients have more than \(settings.memory) bytes in memory")
        return (isOther ? fullest : container, error)
    }

    /// Some of those who see a result, or wait for it: as many as are told apart.
    private func readers(of group: LiveGroup) -> Set<LiveReader> {
        if let reader = group.reader, !group.isIdle { return [reader] }
        // Of those of one reader there may be many.
        let most = 4 * ResultShares.mostReaders
        let numbers = Array(group.clients.prefix(most)) + group.waiting.prefix(most).map(\.client)
        var readers: Set<LiveReader> = []
        for number in numbers where readers.count < ResultShares.mostReaders {
            if let reader = clients[number]?.reader { readers.insert(reader) }
        }
        return readers
    }

    /// Refuses queries that would have those of one user take more memory than there is for them,
    /// whatever they show.
    ///
    /// - Throws: 413.
    func checkRoom(for queries: [DeclaredQuery], of client: LiveClient) throws(APIError) {
        guard case .user(let user) = client.reader else { return }
        let most = settings.queryBytesPerUser
        let container = containers[client.container]
        let there = container?.ownBytes[user] ?? 0
        let asked = queries.filter { $0.query.kind != .notifications }
        // Nearly always it is clear without looking for what is there.
        guard asked.reduce(there, { $0 + $1.query.ownBytes }) > most else { return }
        let new = asked.filter { container?.shows($0.query, to: client.reader) != true }
        guard !new.isEmpty, new.reduce(there, { $0 + $1.query.ownBytes }) > most else { return }
        throw APIError(
            .quotaExceeded,
            "the different queries of one user have at most \(most) bytes, of which each takes "
                + "2048, its text, and what its condition takes in memory; what was asked for of "
                + "late counts for a while")
    }

    /// Ends the results of which a reading has found more than there may be.
    ///
    /// At its end that would be known too late, because all of it is in memory by then. Of what was
    /// found `gone` records may be members no more, because they have changed since.
    ///
    /// - Returns: Those for which nothing more is to be kept; they count no more.
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
            end(group, excess, in: container)
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
                    "what was read for the container's clients has more than \(most) bytes"),
                in: container)
        }
        return ended
    }
}
