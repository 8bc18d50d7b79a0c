import RelayModel

/// Whose turn it is to read: containers take turns, within one those who ask, and of one of these
/// whoever waits longest.
///
/// So who asks for much waits for itself, and not the others for it. Turns that take long are
/// shared out beside that: a container leaves some to the others, who would wait for the end of one
/// otherwise, and a user, or all strangers of a container together, have half at the most.
struct ReaderTurns: Sendable {
    /// Who waits, of one container.
    private struct Line: Sendable {
        private(set) var order: [QueryParty] = []
        private var tickets: [QueryParty: [UInt64]] = [:]

        var count: Int { tickets.values.reduce(0) { $0 + $1.count } }

        mutating func add(_ ticket: UInt64, of party: QueryParty) {
            if tickets[party] == nil { order.append(party) }
            tickets[party, default: []].append(ticket)
        }

        /// Takes out who waits longest of a party, which goes behind the others.
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

    /// The turns that a container has.
    private struct Running: Sendable {
        var count = 0
        var parties: [QueryParty: Int] = [:]
    }

    /// Turns that nobody has.
    private(set) var free: Int
    /// The turns of a container, and of a user or all strangers of one, at the most.
    private let mostOfContainer: Int
    private let mostOfParty: Int
    private var running: [ContainerKey: Running] = [:]
    private var lines: [ContainerKey: Line] = [:]
    /// The containers of which somebody waits, the next one first.
    private var order: [ContainerKey] = []

    /// Creates turns; of them one container leaves so many to others.
    init(free: Int, left: Int = 0) {
        self.free = max(1, free)
        mostOfContainer = max(1, free - left)
        mostOfParty = left > 0 ? max(1, free / 2) : free
    }

    /// How many wait.
    var waiting: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Asks for a turn; returns whether it is given at once.
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

    /// Leaves the line; returns whether the ticket stood in it.
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

    /// Ends a turn; returns who has it now, if anybody who waits may.
    mutating func finish(of container: ContainerKey, by party: QueryParty) -> UInt64? {
        free += 1
        running[container]?.count -= 1
        running[container]?.parties[party, default: 1] -= 1
        if running[container]?.parties[party] == 0 { running[container]?.parties[party] = nil }
        if running[container]?.count == 0 { running[container] = nil }
        return next()
    }

    /// Gives one turn to the first who may have it.
    ///
    /// One at the most may begin for each that ends: nobody waits who could have had a turn before.
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
