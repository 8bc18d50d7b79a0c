import Foundation
import RelayModel

/// The order of values by which records are sorted: nothing first, then numbers, dates, texts and
/// the rest, each among its own kind.
enum RecordOrder {
    /// How two values stand.
    enum Outcome: Sendable, Hashable {
        case before, same, after
    }

    static func compare(_ left: FieldValue, _ right: FieldValue) -> Outcome {
        let ranks = (rank(left), rank(right))
        guard ranks.0 == ranks.1 else { return ranks.0 < ranks.1 ? .before : .after }
        switch (left, right) {
        case (.string(let first), .string(let second)):
            return order(first.utf8.lexicographicallyPrecedes(second.utf8), first == second)
        case (.timestamp(let first), .timestamp(let second)):
            return order(first < second, first == second)
        case (.bytes(let first), .bytes(let second)),
            (.objectID(let first), .objectID(let second)):
            return order(first.lexicographicallyPrecedes(second), first == second)
        case (.uuid(let first), .uuid(let second)):
            return order(first < second, first == second)
        case (.reference(let first), .reference(let second)):
            let names = (first.recordID.recordName, second.recordID.recordName)
            return order(names.0 < names.1, names.0 == names.1)
        case (.integer(let first), .integer(let second)):
            return order(first < second, first == second)
        case (.location(let first), .location(let second)):
            return order(
                (first.latitude, first.longitude) < (second.latitude, second.longitude),
                first == second)
        default:
            guard let first = number(left), let second = number(right) else { return .same }
            return order(first < second, first == second)
        }
    }

    private static func order(_ isBefore: Bool, _ isSame: Bool) -> Outcome {
        isSame ? .same : isBefore ? .before : .after
    }

    private static func rank(_ value: FieldValue) -> Int {
        switch value {
        case .null: 0
        case .bool, .integer, .double: 1
        case .timestamp: 2
        case .string: 3
        case .bytes, .objectID, .uuid: 4
        case .reference: 5
        case .location: 6
        case .list, .set, .map: 7
        }
    }

    private static func number(_ value: FieldValue) -> Double? {
        switch value {
        case .bool(let flag): flag ? 1 : 0
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The distance of two places in metres, on a sphere of the Earth's mean radius.
    static func distance(_ first: Location, _ second: Location) -> Double {
        func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
        let latitudes = (radians(first.latitude), radians(second.latitude))
        let half = sin((latitudes.1 - latitudes.0) / 2)
        let other = sin(radians(second.longitude - first.longitude) / 2)
        let chord = half * half + cos(latitudes.0) * cos(latitudes.1) * other * other
        return 2 * 6_371_008.8 * asin(min(1, chord.squareRoot()))
    }
}
