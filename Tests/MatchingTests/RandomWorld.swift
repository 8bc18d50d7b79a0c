import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

extension SeededGenerator {
    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

    mutating func holds(oneIn many: Int) -> Bool { below(many) == 0 }
}

/// Random predicates and changes over a few fields and values, so that they often match.
struct RandomWorld {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    var generator: SeededGenerator
    let recordTypes = ["Art", "Song"].compactMap(RecordType.init(rawValue:))
    let owners = ["ada", "bob"].compactMap(UserID.init(rawValue:))
    let zones = ["_defaultZone", "east"].compactMap { ZoneID(zoneName: $0) }
    static let fields = ["artist", "price", "title", "tags", "when", "place"]

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Values

    mutating func text() -> String {
        let texts = [
            "", "a", "ab", "abc", "abd", "b", "é", "e\u{301}", "漢字", "A1", "A2",
            String(repeating: "x", count: 70), String(repeating: "x", count: 130),
            String(repeating: "x", count: 129) + "y", "Bob Smith", "bob, the smith", "ABC", "É",
            "K\u{17F}t", "\u{17F}\u{301}x", "xabcdx", "a_b", "e", "H\u{331}", "Straße", "ΣΑΣ",
        ]
        return generator.pick(texts)
    }

    mutating func number() -> FieldValue {
        let numbers: [FieldValue] = [
            .integer(0), .integer(1), .integer(2), .integer(-3), .double(0.5), .double(-0.0),
            .double(2), .integer(10), .double(10.25), .integer(1 << 53), .integer(1 << 53 + 1),
            .double(9_007_199_254_740_992), .integer(.max), .integer(.min), .double(1e300),
            .integer(.max - 1), .bool(true), .bool(false), .double(.infinity), .integer(100),
        ]
        return generator.pick(numbers)
    }

    mutating func moment() -> FieldValue {
        let moments = [
            Timestamp(seconds: 0), Timestamp(seconds: 1_700_000_000),
            Timestamp(seconds: 1_700_000_000, nanoseconds: 1),
            Timestamp(seconds: 1_700_000_500), Timestamp(seconds: -9_000_000_000_000),
        ]
        return .timestamp(generator.pick(moments))
    }

    mutating func scalar() -> FieldValue {
        switch generator.below(10) {
        case 0...3: .string(text())
        case 4...6: number()
        case 7: moment()
        case 8: .null
        default: generator.pick(Self.rarities)
        }
    }

    static let rarities: [FieldValue] = [
        .bytes([1, 2]), .uuid(UUIDBytes(high: 1, low: 2)), .double(.nan),
        Location(latitude: 1, longitude: 2).map(FieldValue.location) ?? .null,
        RecordName(rawValue: "r").map { .reference(RecordReference(RecordID(recordName: $0))) }
            ?? .null,
    ]

    mutating func value() -> FieldValue {
        switch generator.below(14) {
        case 12: place()
        case 13: .map(["a": .map(["b": scalar()]), "b": value()])
        case 0: .list((0..<generator.below(4)).map { _ in scalar() })
        case 1: .set(Set((0..<generator.below(3)).map { _ in scalar() }))
        case 2: .map(["a": scalar()])
        default: scalar()
        }
    }

    // MARK: Predicates

    mutating func leaf() -> Node {
        let field = Expression.field(generator.pick(Self.fields))
        let comparison: RecordPredicate.Comparison
        switch generator.below(18) {
        case 0...3: comparison = .init(field, .equal, .constant(scalar()))
        case 4: comparison = .init(field, .notEqual, .constant(scalar()))
        case 5...7:
            let order: RecordPredicate.Comparator = generator.pick([
                .less, .lessOrEqual, .greater, .greaterOrEqual,
            ])
            comparison = .init(field, order, .constant(ordered()))
        case 8:
            let bounds = FieldValue.list([ordered(), ordered()])
            comparison = .init(field, .between, .constant(bounds))
        case 9:
            let count = generator.below(7)
            let values = FieldValue.list((0..<count).map { _ in scalar() })
            comparison = .init(field, .in, .constant(values))
        case 10: comparison = .init(field, .beginsWith, .constant(.string(text())))
        case 11:
            comparison = .init(
                field, generator.pick([.contains, .endsWith]), .constant(.string(text())))
        case 12: comparison = .init(.constant(scalar()), .in, field)
        case 13:
            let quantifier = generator.pick(RecordPredicate.Quantifier.allCases)
            comparison = .init(
                field, .equal, .constant(scalar()), quantifier: quantifier)
        default: comparison = odd(field)
        }
        return .comparison(comparison)
    }

    private mutating func ordered() -> FieldValue {
        switch generator.below(8) {
        case 0: .string(text())
        case 1: moment()
        case 2: .null
        default: number()
        }
    }

    /// Draws a comparison that has keys of its own kind, or that only the reference evaluator can
    /// judge: substrings, words, patterns, places, members, folding.
    private mutating func odd(_ field: Expression) -> RecordPredicate.Comparison {
        switch generator.below(12) {
        case 0: folded(field)
        case 1, 2: .init(field, .like, .constant(.string(pattern())), options: options())
        case 3:
            .init(
                .arithmetic(.add, field, .constant(.integer(1))), .greater, .constant(.integer(2)))
        case 4: .init(field, .equal, .field(generator.pick(Self.fields)))
        case 5:
            .init(
                field, .matches,
                .constant(.string(generator.pick(["a.*", "ab?c", "[ab]+", "A1"]))),
                options: generator.holds(oneIn: 2) ? [] : .ignoringCase)
        case 6:
            .init(
                generator.holds(oneIn: 2) ? field : .record, .tokenMatches,
                .constant(.string(generator.pick(Self.phrases))))
        case 7: .init(.record, .contains, .constant(.string(generator.pick(Self.phrases))))
        case 8, 9: near(field)
        case 10:
            .init(
                .field(generator.pick(Self.fields), generator.pick(["a", "b", "length"])),
                generator.pick([.equal, .notEqual, .less, .beginsWith, .contains]),
                .constant(.string(text())))
        default:
            .init(
                field, .in, .constant(.list([scalar(), .string(text())])), options: options(),
                quantifier: generator.holds(oneIn: 2) ? .any : nil)
        }
    }

    private mutating func folded(_ field: Expression) -> RecordPredicate.Comparison {
        let comparator: RecordPredicate.Comparator = generator.pick([
            .equal, .notEqual, .beginsWith, .contains, .endsWith, .less, .greaterOrEqual,
        ])
        return .init(field, comparator, .constant(.string(text())), options: options())
    }

    private mutating func options() -> RecordPredicate.TextOptions {
        generator.pick([
            [], .ignoringCase, .ignoringDiacritics, [.ignoringCase, .ignoringDiacritics],
            .normalized, .localeAware,
        ])
    }

    private mutating func pattern() -> String {
        generator.pick([
            "a*", "*b*", "ab?", "", "*", "a*b*c", "*abc", "\\*", "é*", "e\u{301}", "?", "*é?*",
            "AB*",
            "*xxxxx*y", "s*", "*bcd*", "ks*",
        ])
    }

    static let phrases = ["bob", "Bob Smith", "the", "É", "abc a", "smith-jones", "漢字", "x1 y2"]

    /// Draws a comparison with a circle around a random place.
    private mutating func near(_ field: Expression) -> RecordPredicate.Comparison {
        let radius = generator.pick([0, 10, 1000, 150_000, 3_000_000, 15_000_000, 30_000_000.5])
        let centre = Expression.constant(place())
        let sides = generator.holds(oneIn: 2) ? [field, centre] : [centre, field]
        return .init(
            .call(.distance, sides), generator.pick([.less, .lessOrEqual, .less, .greater]),
            .constant(
                generator.holds(oneIn: 2) ? .double(radius) : .integer(Int64(radius))))
    }

    mutating func place() -> FieldValue {
        let latitudes = [0, 1, 52.52, 52.521, -90, 90, 89.99, -0.0, 45, -33.8]
        let longitudes = [0, 2, 13.4, 13.405, 180, -180, 179.999, -179.99, 90, 151.2]
        return Location(
            latitude: generator.pick(latitudes), longitude: generator.pick(longitudes)
        ).map(FieldValue.location) ?? .null
    }

    mutating func node(depth: Int) -> Node {
        if depth == 0 || generator.holds(oneIn: 3) { return leaf() }
        switch generator.below(7) {
        case 0...2: return .and((0..<2 + generator.below(2)).map { _ in node(depth: depth - 1) })
        case 3...4: return .or((0..<2 + generator.below(2)).map { _ in node(depth: depth - 1) })
        case 5: return .not(node(depth: depth - 1))
        default: return .constant(generator.holds(oneIn: 2))
        }
    }

    mutating func subscription(_ serial: UInt64) -> IndexedSubscription {
        let database = generator.pick(DatabaseScope.allCases + [.public, .public, .public])
        let zone: ZoneID? = generator.holds(oneIn: 4) ? generator.pick(zones) : nil
        let type: RecordType? =
            generator.holds(oneIn: 8) ? nil : generator.pick(recordTypes)
        let isPlain = generator.holds(oneIn: type == nil ? 2 : 8)
        return IndexedSubscription(
            serial: serial, database: database, owner: generator.pick(owners), zoneID: zone,
            recordType: type,
            firesOn: generator.holds(oneIn: 2)
                ? .all : FiresOn(rawValue: UInt8(1 + generator.below(7))),
            predicate: isPlain ? nil : RecordPredicate(node(depth: 3)))
    }

    // MARK: Changes

    mutating func fields() -> RecordFields {
        var fields: RecordFields = [:]
        for name in Self.fields where !generator.holds(oneIn: 5) { fields[name] = value() }
        return fields
    }

    private mutating func image() -> RecordImage {
        RecordImage(fields(), completeness: generator.holds(oneIn: 6) ? .partial : .full)
    }

    mutating func change() throws -> RecordChange {
        let name = try #require(RecordName(rawValue: "r"))
        var change = RecordChange(
            generator.pick(ChangeOperation.allCases), of: generator.pick(recordTypes),
            RecordID(recordName: name, zoneID: generator.pick(zones)))
        change.database = generator.pick(DatabaseScope.allCases + [.public, .public])
        change.owner = change.database == .public ? nil : generator.pick(owners)
        if change.operation != .create { change.before = image() }
        if change.operation != .delete { change.after = image() }
        return change
    }
}

/// The obvious implementation: evaluates every subscription, one after another, by the reference
/// evaluator.
struct ReferenceIndex {
    private(set) var subscriptions: [UInt64: IndexedSubscription] = [:]
    private var prepared: [UInt64: PreparedPredicate] = [:]

    mutating func insert(_ subscription: IndexedSubscription) {
        subscriptions[subscription.serial] = subscription
        prepared[subscription.serial] = subscription.predicate.flatMap { predicate in
            try? PreparedPredicate(predicate)
        }
    }

    mutating func remove(_ serial: UInt64) -> Bool {
        prepared[serial] = nil
        return subscriptions.removeValue(forKey: serial) != nil
    }

    func matches(for change: RecordChange) -> [UInt64] {
        subscriptions.values.filter { fires($0, on: change) }.map(\.serial).sorted()
    }

    private func fires(_ subscription: IndexedSubscription, on change: RecordChange) -> Bool {
        guard subscription.firesOn.contains(FiresOn(change.operation)),
            subscription.database == change.database,
            change.database == .public || subscription.owner == change.owner,
            subscription.zoneID == nil || subscription.zoneID == change.recordID.zoneID,
            subscription.recordType == nil || subscription.recordType == change.recordType
        else { return false }
        guard subscription.predicate != nil else { return true }
        guard let image = change.judgedImage else { return false }
        guard let predicate = prepared[subscription.serial] else { return false }
        if image.completeness == .full { return predicate.evaluate(on: image.fields) == .true }
        let known = predicate.predicate.knowing(image.fields.keys)
        return known.evaluate(on: image.fields) == .true
    }
}
