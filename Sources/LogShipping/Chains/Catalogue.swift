package import RelayModel

/// The contents of a destination, as its names show them.
package struct Catalogue: Sendable {
    /// A whole copy of the file.
    package struct Base: Sendable, Hashable {
        /// The chain whose segments complete the copy.
        package let chain: String
        /// The number of the copy in the chain; later copies have greater numbers.
        package let number: UInt64
        /// The segments that the copy needs, and the earliest moment that it can be restored to.
        package let reach: BaseReach
    }

    /// A segment.
    package struct Segment: Sendable, Hashable {
        /// The number of the segment in the chain.
        ///
        /// Numbers are consecutive.
        package let sequence: UInt64
        /// The moment of the last commit in the segment; earlier than all others if no commit ends
        /// in it.
        package let moment: Timestamp
        let name: String
    }

    /// The whole copies, earliest first.
    package private(set) var bases: [Base] = []
    /// The segments of each chain, in order.
    package private(set) var segments: [String: [Segment]] = [:]
    /// All names of each copy, whole or not, by chain and number.
    private(set) var parts: [String: [UInt64: [String]]] = [:]

    /// Creates a catalogue from the names of all objects at a destination, in any order; foreign
    /// names are ignored.
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

    /// Returns the segments that a copy needs to reach `moment`.
    ///
    /// They are in order and end with the first segment whose last commit is after `moment`. If a
    /// segment is missing before that, the result also has its number. If several segments were
    /// shipped under one number, all of them are included, one after the other.
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
            // A segment that ends exactly at the moment may be followed by another commit of the
            // same moment.
            isEnough = segment.moment > moment
        }
        return (found, isEnough || next > base.reach.last ? nil : next)
    }

    /// Groups ordered segments by number.
    static func byNumber(_ segments: [Segment]) -> [[Segment]] {
        segments.reduce(into: []) { groups, segment in
            if groups.last?.first?.sequence == segment.sequence {
                groups[groups.count - 1].append(segment)
            } else {
                groups.append([segment])
            }
        }
    }

    /// Returns the first number under which more than one segment was shipped, among those that a
    /// copy needs.
    package func doubled(of base: Base) -> UInt64? {
        let needed = (segments[base.chain] ?? []).filter { $0.sequence >= base.reach.since }
        return zip(needed, needed.dropFirst()).first { $0.sequence == $1.sequence }?.0.sequence
    }

    /// Returns whether two relays have shipped segments of the same number to a chain.
    func isForked(_ chain: String) -> Bool {
        let all = segments[chain] ?? []
        return zip(all, all.dropFirst()).contains { $0.sequence == $1.sequence }
    }

    /// Returns the segments of a chain that any of its copies needs, in order, with or without
    /// gaps.
    func needed(of chain: String) -> [Segment] {
        let first = bases.filter { $0.chain == chain }.map(\.reach.since).min() ?? .max
        return (segments[chain] ?? []).filter { $0.sequence >= first }
    }

    /// Returns how far a copy can be restored.
    ///
    /// That is the last commit before the first missing segment, or before the end. The result is
    /// `nil` if a segment is missing that the copy needs at least.
    package func end(of base: Base) -> (moment: Timestamp, missing: UInt64?)? {
        let (found, missing) = segments(of: base, through: .latest)
        guard let last = found.last, last.sequence >= base.reach.last else { return nil }
        return (found.map(\.moment).max() ?? last.moment, missing)
    }

    /// Returns the names that are no longer needed if the last `count` whole copies are kept.
    ///
    /// They are in the order in which to remove them: the manifest that declares a copy whole goes
    /// before its parts.
    ///
    /// `current` is the chain that is being written. Chains that sort after it belong to another
    /// relay, or were begun while the clock was ahead; they stay. The last copy of `current` is
    /// always kept.
    package func superfluous(keeping count: Int, current: String) -> [String] {
        var kept = Set(bases.suffix(max(1, count)))
        // Nothing is removed while there is no whole copy to restore from.
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
            // The current chain may be about to get its first copy.
            guard needed != nil || chain != current else { continue }
            names += segments.filter { $0.sequence < needed ?? .max }.map(\.name)
        }
        return names
    }

    /// Returns the names of unfinished copies, and of the log that only they need.
    ///
    /// Only chains up to `current` count, in which copy `next` is about to begin.
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
