import RelayModel

/// The kinds of value that a field may have for a comparison to hold, as far as NSPredicate's
/// operators distinguish kinds.
///
/// A value of any other kind does not match, or is an evaluation error, which is no match either.
struct AskedKinds: OptionSet, Sendable {
    let rawValue: UInt8

    static let nothing = AskedKinds(rawValue: 1)
    static let number = AskedKinds(rawValue: 2)
    static let text = AskedKinds(rawValue: 4)
    static let moment = AskedKinds(rawValue: 8)
    /// Collections, locations, references and similar values.
    static let other = AskedKinds(rawValue: 16)
    static let all: AskedKinds = [.nothing, .number, .text, .moment, .other]

    /// Creates the kind of one value.
    init(of value: FieldValue) {
        self =
            switch value {
            case .null: .nothing
            case .bool, .integer, .double: .number
            case .string: .text
            case .timestamp: .moment
            default: .other
            }
    }

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Creates the kinds that a comparison admits for a field to the left of a constant.
    init(field comparator: RecordPredicate.Comparator, _ value: FieldValue) {
        switch comparator {
        case .equal, .lessOrEqual, .greaterOrEqual, .less, .greater: self.init(of: value)
        case .between:
            self = .all
            if case .list(let bounds) = value {
                for bound in bounds { formIntersection(AskedKinds(of: bound)) }
            }
        case .in:
            switch value {
            case .list(let values):
                self = []
                for value in values { formUnion(AskedKinds(of: value)) }
            case .string: self = .text
            default: self = .all
            }
        case .contains: self = [.text, .other]
        case .beginsWith, .endsWith, .like, .matches, .typeEquals: self = .text
        case .tokenMatches: self = [.text, .other]
        case .notEqual, .geoWithin: self = .all
        }
    }

    /// Creates the kinds that a comparison admits for a field to the right of a constant.
    init(_ comparator: RecordPredicate.Comparator, field value: FieldValue) {
        switch comparator {
        case .equal, .lessOrEqual, .greaterOrEqual, .less, .greater: self.init(of: value)
        case .in: self = [.text, .other]
        case .contains:
            if case .string = value { self = .text } else { self = .all }
        case .beginsWith, .endsWith, .like, .matches, .typeEquals: self = .text
        case .notEqual, .between, .tokenMatches, .geoWithin: self = .all
        }
    }
}

extension Contradiction {
    /// Returns whether comparisons under NSPredicate's rules require one field to be of different
    /// kinds.
    func asksForDifferentKinds(_ nodes: [Node]) -> Bool {
        var asked: [RecordPredicate.RecordPath: AskedKinds] = [:]
        for node in nodes {
            guard case .comparison(let comparison) = node, comparison.rules == .apple,
                comparison.quantifier == nil, let path = Self.field(of: comparison)
            else { continue }
            let kinds: AskedKinds
            switch (comparison.left, comparison.right) {
            case (_, .constant(let value)):
                kinds = AskedKinds(field: comparison.comparator, value)
            case (.constant(let value), _):
                kinds = AskedKinds(comparison.comparator, field: value)
            default: continue
            }
            asked[path, default: .all].formIntersection(kinds)
            if asked[path] == [] { return true }
        }
        return false
    }

    /// Returns the field that a comparison compares with a constant, or `nil` if the comparison has
    /// another form or concerns a system field.
    static func field(of comparison: Comparison) -> RecordPredicate.RecordPath? {
        let path: RecordPredicate.RecordPath
        switch (comparison.left, comparison.right) {
        case (.path(let left), .constant): path = left
        case (.constant, .path(let right)): path = right
        default: return nil
        }
        // System fields, which the relay itself knows, are not among a record's fields.
        guard !comparison.searchesAllTokens, let name = path.memberNames?.first,
            SystemField(named: name) == nil
        else { return nil }
        return path
    }
}
