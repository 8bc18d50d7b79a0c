import Fanout
import Foundation
import Matching
import PredicateLanguage
import RelayModel
import RelayServer

/// Measures what ordinary changes cost if a user has saved predicates that no key finds, up to the
/// limits of their cost.
struct HostileBench {
    /// The kind of predicates that the attacker saves.
    enum Attack: String, CaseIterable {
        /// Nothing.
        case nothing
        /// Comparisons of which every change runs one row.
        case rows
        /// Patterns that only the reference evaluator judges.
        case patterns
        /// Rows under a value that one change in five has.
        case value
    }

    static let heading = """
        | saved beside | limit | predicates | comparisons by the account | programs per change | \
        most programs | bound | µs per change | p99 µs |
        |---|--:|--:|--:|--:|--:|--:|--:|--:|
        """

    private let workload: BenchWorkload
    private let changes: [RecordChange]
    private let recordType: RecordType
    private let owner: UserID

    init?(count: Int, seed: UInt64, changeCount: Int) {
        guard let workload = BenchWorkload(shape: .g, count: count, seed: seed),
            let recordType = RecordType(rawValue: "Art"), let owner = UserID(rawValue: "mallory")
        else { return nil }
        (self.workload, self.recordType, self.owner) = (workload, recordType, owner)
        var source = workload
        for number in 0..<count { _ = source.subscription(number) }
        changes = (0..<changeCount).map { _ in source.change() }
    }

    /// Prints one line for each attack by one user, and by as many users as a record type allows.
    func run() {
        let limits = CostLimits()
        print(Self.heading)
        for attack in Attack.allCases {
            let bounds = attack == .nothing ? [0] : [limits.perUser, limits.perRecordType]
            for bound in bounds { print(measure(attack, upTo: bound, limits)) }
        }
    }

    private func measure(_ attack: Attack, upTo limit: Int, _ limits: CostLimits) -> String {
        let index = SubscriptionIndex(seed: 0x5EED_5EED)
        var source = workload
        for number in 0..<workload.count { index.insert(source.subscription(number)) }
        // The index learns the frequency of values from these changes, which decides the cost of a
        // predicate under a value.
        var serials: [UInt64] = []
        for change in changes.prefix(2000) { index.matches(for: change, into: &serials) }
        let (saved, account) = save(attack, upTo: limit, limits, in: index)
        let decoded = DecodedChange()
        var (latencies, most) = ([Double](), UInt64(0))
        let clock = ContinuousClock()
        let before = index.statistics.runs
        for change in changes {
            index.decode(change, into: decoded)
            let start = clock.now
            index.matches(for: decoded, into: &serials)
            latencies.append((clock.now - start) / .microseconds(1))
        }
        let runs = index.statistics.runs - before
        for change in changes.prefix(200) {
            let before = index.statistics.runs
            index.matches(for: change, into: &serials)
            most = max(most, index.statistics.runs - before)
        }
        latencies.sort()
        let cells = [
            attack.rawValue, "\(limit)", "\(saved)", format(account, 0),
            format(Double(runs) / Double(changes.count), 1), "\(most)",
            "\(limit) + 64 a key",
            format(latencies[latencies.count / 2], 2),
            format(latencies[latencies.count * 99 / 100], 2),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    /// Saves different predicates as long as a relay would take them; returns their number and
    /// cost.
    private func save(
        _ attack: Attack, upTo limit: Int, _ limits: CostLimits, in index: SubscriptionIndex
    ) -> (Int, Double) {
        var (saved, account) = (0, 0.0)
        guard attack != .nothing else { return (0, 0) }
        for number in 0..<limits.perRecordType {
            guard let predicate = predicate(attack, number) else { break }
            let subscription = IndexedSubscription(
                serial: UInt64(workload.count + number), database: .public, owner: owner,
                recordType: recordType, predicate: predicate)
            let cost = PredicateCost(index.insert(subscription), of: predicate)
            let weight = cost.isNoticeable ? cost.comparisonsPerChange : 0
            if account + weight > Double(limit) || cost.crowd >= limits.perRecordType {
                index.remove(serial: subscription.serial)
                break
            }
            account += weight
            saved += 1
        }
        return (saved, account)
    }

    private func predicate(_ attack: Attack, _ number: Int) -> RecordPredicate? {
        let ending = Self.ending(number)
        switch attack {
        case .nothing: return nil
        case .rows: return try? RecordPredicate(format: ending)
        case .patterns:
            return try? RecordPredicate(format: "title MATCHES '.*[aeiou]+q\(number)'")
        case .value: return try? RecordPredicate(format: "genre == 'g0' AND \(ending)")
        }
    }

    /// Returns a comparison that no change satisfies, and that has no key.
    private static func ending(_ number: Int) -> String {
        let fields = ["title", "artist", "owner", "status"]
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        let all = letters + Array("abcdefghijklmnopqrstuvwxyz0123456789-_+=.:;,!#/()<>{}|~^&@")
        let rest = number / fields.count
        let pair = [all[rest / letters.count % all.count], letters[rest % letters.count]]
        // After all pairs of letters are used, a second comparison makes the predicates different.
        let round = rest / (letters.count * all.count)
        let beside = round == 0 ? "" : " AND score != \(-round)"
        return "\(fields[number % fields.count]) ENDSWITH '\(String(pair))'\(beside)"
    }

    private func format(_ number: Double, _ digits: Int) -> String {
        String(format: "%.\(digits)f", number)
    }
}
