import RelayModel

/// Decides who reads next: containers take turns, parties take turns within a container, and within
/// a party the longest waiter comes first.
///
/// So a caller with many requests waits for its own requests, and others do not wait for it. Long
/// turns are limited too: a container leaves some turns to other containers, which would otherwise
/// wait for one to end, and a user, or all strangers of a container together, get at most half.
struct ReaderTurns: Sendable {
    /// The waiters of one container.
    private struct Line: Sendable {
        private(set) var order: [QueryParty] = []
        private var tickets: [QueryParty: [UInt64]] = [:]

        var count: Int { tickets.values.reduce(0) { $0 + $1.count } }

        mutating func add(_ ticket: UInt64, of party: QueryParty) {
            if tickets[party] == nil { order.append(party) }
            tickets[party, default: []].append(ticket)
        }

        /// Removes the longest waiter of a party and moves the party behind the others.
        mutating func takeFirst(of party: QueryParty) -> UInt64? {
            guard let ticket = tickets[party]?.removeFirst() else { return nil }
            order.removeAll { $0 == party }
            if tickets[party] == [] { tickets[party] = nil } else { order.append(party) }
            return ticket
        }

        mutating func remove(_ ticket: UInt64, of party: QueryParty) -> Bool {
            guard let index = tickets[party]?.firstIndex(of: ticket) else { return false }
            tickets[party]?.remove(at: index)
            if tickets[party] == [] {
                tickets[party] = nil
                order.removeAll { $0 == party }
            }
            return true
        }
    }

    /// The current turns of a container.
    private struct Running: Sendable {
        var count = 0
        var parties: [QueryParty: Int] = [:]
    }

    /// The number of free turns.
    private(set) var free: Int
    /// The maximum number of turns of a container, and of a user or all strangers of a container.
    private let mostOfContainer: Int
    private let mostOfParty: Int
    private var running: [ContainerKey: Running] = [:]
    private var lines: [ContainerKey: Line] = [:]
    /// The containers with waiters, the next one first.
    private var order: [ContainerKey] = []

    /// Creates `free` turns, of which one container leaves `left` to others.
    init(free: Int, left: Int = 0) {
        self.free = max(1, free)
        mostOfContainer = max(1, free - left)
        mostOfParty = left > 0 ? max(1, free / 2) : free
    }

    /// The number of waiters.
    var waiting: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Requests a turn and returns whether it is given at once.
    mutating func ask(
        _ ticket: UInt64, of container: ContainerKey, by party: QueryParty
    ) -> Bool {
        guard free == 0 || !mayHave(party, of: container) else {
            begin(party, of: container)
            return true
        }
        if lines[container] == nil { order.append(container) }
        lines[container, default: Line()].add(ticket, of: party)
        return false
    }

    /// Leaves the queue and returns whether the ticket was in it.
    mutating func withdraw(
        _ ticket: UInt64, of container: ContainerKey, by party: QueryParty
    ) -> Bool {
        guard lines[container]?.remove(ticket, of: party) == true else { return false }
        if lines[container]?.order.isEmpty == true {
            lines[container] = nil
            order.removeAll { $0 == container }
        }
        return true
    }

    /// Ends a turn and returns the ticket that gets the next turn, if any waiter may have it.
    mutating func finish(of container: ContainerKey, by party: QueryParty) -> UInt64? {
        free += 1
        running[container]?.count -= 1
        running[container]?.parties[party, default: 1] -= 1
        if running[container]?.parties[party] == 0 { running[container]?.parties[party] = nil }
        if running[container]?.count == 0 { running[container] = nil }
        return next()
    }

    /// Gives one turn to the first waiter that may have it.
    ///
    /// Each ended turn lets at most one other begin, because no waiter could have had a turn
    /// before.
    private mutating func next() -> UInt64? {
        for (index, container) in order.enumerated() {
            let party = lines[container]?.order.first { mayHave($0, of: container) }
            guard let party, let ticket = lines[container]?.takeFirst(of: party) else { continue }
            order.remove(at: index)
            if lines[container]?.order.isEmpty == true {
                lines[container] = nil
            } else {
                order.append(container)
            }
            begin(party, of: container)
            return ticket
        }
        return nil
    }

    private mutating func begin(_ party: QueryParty, of container: ContainerKey) {
        free -= 1
        running[container, default: Running()].count += 1
        running[container]?.parties[party, default: 0] += 1
    }

    private func mayHave(_ party: QueryParty, of container: ContainerKey) -> Bool {
        guard let running = running[container] else { return true }
        guard running.count < mostOfContainer else { return false }
        return party == .server || running.parties[party, default: 0] < mostOfParty
    }
}
