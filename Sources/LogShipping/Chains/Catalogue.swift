package import RelayModel

/// What a destination holds, by its names.
package struct Catalogue: Sendable {
    /// A copy of the file that is whole.
    package struct Base: Sendable, Hashable {
        /// The chain whose segments make it whole.
        package let chain: String
        /// Its number in the chain; a later copy has a greater one.
        package let number: UInt64
        /// The segments that it needs, and from when on it can be restored.
        package let reach: BaseReach
    }

    /// A segment.
    package struct Segment: Sendable, Hashable {
        /// Its number in the chain; the next one's is one more.
        package let sequence: UInt64
        /// The last commit in it; before all others if none ends in it.
        package let moment: Timestamp
        let name: String
    }

    /// The whole copies, the earliest first.
    package private(set) var bases: [Base] = []
    /// The segments of each chain, in order.
    package private(set) var segments: [String: [Segment]] = [:]
    /// All names of each copy, whole or not.
    private(set) var parts: [String: [UInt64: [String]]] = [:]

    /// Reads the names of all objects at a destination, in any order; foreign ones are passed over.
    package init(_ names: [String]) {
        for name in names {
            switch BackupName(name) {
            case .segment(let chain, let sequence, let moment)?:
                segments[chain, default: []]
                    .append(Segment(sequence: sequence, moment: moment, name: name))
            case .part(let chain, let base, _)?:
                parts[chain, default: [:]][base, default: []].append(name)
            case .whole(let chain, let base, let reach)?:
                parts[chain, default: [:]][base, default: []].append(name)
                bases.append(Base(chain: chain, number: base, reach: reach))
            case nil: continue
            }
        }
        bases.sort {
            ($0.reach.moment, $0.chain, $0.number) < ($1.reach.moment, $1.chain, $1.number)
        }
        for chain in segments.keys {
            segments[chain]?.sort {
                ($0.sequence, $0.moment, $0.name) < ($1.sequence, $1.moment, $1.name)
            }
        }
    }

    /// The segments that a copy needs, in order, up to the first whose last commit is after
    /// `moment`; and the number of the first that is missing before the last of them all.
    ///
    /// Of a number that was shipped more than once all are there, one behind the other.
    package func segments(
        of base: Base, through moment: Timestamp
    ) -> (found: [Segment], missing: UInt64?) {
        var found: [Segment] = []
        var next = base.reach.since
        var isEnough = false
        for segment in segments[base.chain] ?? [] where segment.sequence >= base.reach.since {
            if segment.sequence + 1 == next {
                found.append(segment)
                continue
            }
            if isEnough { break }
            guard segment.sequence == next else { return (found, next) }
            found.append(segment)
            next += 1
            // One that only ends at the moment may be followed by another of the same moment.
            isEnough = segment.moment > moment
        }
        return (found, isEnough || next > base.reach.last ? nil : next)
    }

    /// Segments in order, those of one number together.
    static func byNumber(_ segments: [Segment]) -> [[Segment]] {
        segments.reduce(into: []) { groups, segment in
            if groups.last?.first?.sequence == segment.sequence {
                groups[groups.count - 1].append(segment)
            } else {
                groups.append([segment])
            }
        }
    }

    /// The first number from the first segment on that a copy needs under which more than one was
    /// shipped.
    package func doubled(of base: Base) -> UInt64? {
        let needed = (segments[base.chain] ?? []).filter { $0.sequence >= base.reach.since }
        return zip(needed, needed.dropFirst()).first { $0.sequence == $1.sequence }?.0.sequence
    }

    /// Whether two relays have shipped a segment of the same number of a chain.
    func isForked(_ chain: String) -> Bool {
        let all = segments[chain] ?? []
        return zip(all, all.dropFirst()).contains { $0.sequence == $1.sequence }
    }

    /// The segments of a chain that any of its copies needs, in order, gaps or not.
    func needed(of chain: String) -> [Segment] {
        let first = bases.filter { $0.chain == chain }.map(\.reach.since).min() ?? .max
        return (segments[chain] ?? []).filter { $0.sequence >= first }
    }

    /// How far a copy can be taken: the last commit before the end or before a segment that is
    /// missing; `nil` if one is missing that it needs at the least.
    package func end(of base: Base) -> (moment: Timestamp, missing: UInt64?)? {
        let (found, missing) = segments(of: base, through: .latest)
        guard let last = found.last, last.sequence >= base.reach.last else { return nil }
        return (found.map(\.moment).max() ?? last.moment, missing)
    }

    /// The names that nobody needs if the last `count` whole copies are kept, in the order in which
    /// they go: what says that a copy is whole goes before its parts.
    ///
    /// `current` is the chain that is written: what is later is somebody else's, or was made while
    /// the clock was ahead. So its last copy is kept in any case.
    package func superfluous(keeping count: Int, current: String) -> [String] {
        var kept = Set(bases.suffix(max(1, count)))
        // Without a copy to go back to nothing goes.
        guard !kept.isEmpty else { return [] }
        if let newest = bases.last(where: { $0.chain == current }) { kept.insert(newest) }
        let places = Set(kept.map { [$0.chain, "\($0.number)"] })
        var names: [String] = []
        for (chain, numbers) in parts where chain <= current {
            for (number, parts) in numbers where !places.contains([chain, "\(number)"]) {
                names += parts.filter(Self.isWhole) + parts.filter { !Self.isWhole($0) }
            }
        }
        for (chain, segments) in segments where chain <= current {
            let needed = kept.filter { $0.chain == chain }.map(\.reach.since).min()
            // The chain that is written may be about to get its first copy.
            guard needed != nil || chain != current else { continue }
            names += segments.filter { $0.sequence < needed ?? .max }.map(\.name)
        }
        return names
    }

    /// The names of copies that never became whole, and of the log that only they need, in chains
    /// up to `current`, in which copy `next` is about to begin.
    func abandoned(before next: UInt64, of current: String) -> [String] {
        let places = Set(bases.map { [$0.chain, "\($0.number)"] })
        var names: [String] = []
        for (chain, numbers) in parts where chain <= current {
            for (number, parts) in numbers where !places.contains([chain, "\(number)"]) {
                if chain < current || number < next { names += parts }
            }
        }
        let chains = Set(bases.map(\.chain))
        for (chain, segments) in segments where chain < current && !chains.contains(chain) {
            names += segments.map(\.name)
        }
        return names
    }

    private static func isWhole(_ name: String) -> Bool { name.contains("/whole-") }
}
