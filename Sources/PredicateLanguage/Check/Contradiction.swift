import RelayModel

/// Whether a condition asks for two things of which a record can have one only.
///
/// What is found is certain; much is not looked for. Only comparisons of a field with a constant
/// under NSPredicate's rules count: elsewhere a field may be many values, each of which satisfies
/// another comparison.
struct Contradiction {
    typealias Node = RecordPredicate.Node
    typealias Comparison = RecordPredicate.Comparison
    typealias Comparator = RecordPredicate.Comparator

    /// What a field must be.
    private struct Wish {
        var equal: FieldValue?
        var others: [FieldValue] = []
        var choice: [FieldValue]?
        var least: (value: Double, isOpen: Bool)?
        var most: (value: Double, isOpen: Bool)?
    }

    /// More comparisons than these are not looked at: the cost grows with their square.
    private static let mostTerms = 200

    static func isIn(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): !isTrue
        case .comparison(let comparison): isImpossible(comparison)
        case .or(let nodes): nodes.allSatisfy(isIn)
        case .and(let nodes): nodes.contains(where: isIn) || clash(nodes.prefix(mostTerms))
        case .not: false
        }
    }

    private static func isImpossible(_ comparison: Comparison) -> Bool {
        guard let term = Term(comparison) else { return false }
        var wish = Wish()
        return !take(term, into: &wish)
    }

    private static func clash(_ nodes: some Sequence<Node>) -> Bool {
        var wishes: [RecordPredicate.RecordPath: Wish] = [:]
        for node in nodes {
            guard case .comparison(let comparison) = node, let term = Term(comparison) else {
                continue
            }
            guard take(term, into: &wishes[term.path, default: Wish()]) else { return true }
        }
        return false
    }

    /// A field, a comparator and a constant, in this order.
    private struct Term {
        let path: RecordPredicate.RecordPath
        let comparator: Comparator
        let value: FieldValue

        init?(_ comparison: Comparison) {
            guard comparison.rules == .apple, comparison.quantifier == nil,
                comparison.options.isEmpty
            else { return nil }
            switch (comparison.left, comparison.right) {
            case (.path(let path), .constant(let value)):
                (self.path, self.value) = (path, value)
                comparator = comparison.comparator
            case (.constant(let value), .path(let path)):
                guard let mirrored = Self.mirrored[comparison.comparator] else { return nil }
                (self.path, self.value) = (path, value)
                comparator = mirrored
            default: return nil
            }
            guard !path.components.isEmpty, path.components.allSatisfy(Self.isMember) else {
                return nil
            }
        }

        private static func isMember(_ part: RecordPredicate.RecordPath.Component) -> Bool {
            if case .member = part { true } else { false }
        }

        private static let mirrored: [Comparator: Comparator] = [
            .equal: .equal, .notEqual: .notEqual, .less: .greater, .lessOrEqual: .greaterOrEqual,
            .greater: .less, .greaterOrEqual: .lessOrEqual,
        ]
    }

    /// Adds what a comparison asks for; false if nothing can be all of it.
    private static func take(_ term: Term, into wish: inout Wish) -> Bool {
        switch term.comparator {
        case .equal:
            if let known = wish.equal, areOther(known, term.value) { return false }
            wish.equal = term.value
        case .notEqual: wish.others.append(term.value)
        case .in:
            guard case .list(let values) = term.value else { return true }
            wish.choice =
                wish.choice.map { $0.filter { one in values.contains { !areOther(one, $0) } } }
                ?? values
        case .less, .lessOrEqual:
            guard let number = number(term.value) else { return true }
            lower(&wish, number, isOpen: term.comparator == .less)
        case .greater, .greaterOrEqual:
            guard let number = number(term.value) else { return true }
            raise(&wish, number, isOpen: term.comparator == .greater)
        case .between:
            guard case .list(let bounds) = term.value, bounds.count == 2,
                let least = number(bounds[0]), let most = number(bounds[1])
            else { return true }
            raise(&wish, least, isOpen: false)
            lower(&wish, most, isOpen: false)
        default: return true
        }
        return isPossible(wish)
    }

    private static func lower(_ wish: inout Wish, _ value: Double, isOpen: Bool) {
        if let most = wish.most, (most.value, most.isOpen ? 0 : 1) < (value, isOpen ? 0 : 1) {
            return
        }
        wish.most = (value, isOpen)
    }

    private static func raise(_ wish: inout Wish, _ value: Double, isOpen: Bool) {
        if let least = wish.least, (least.value, least.isOpen ? 1 : 0) > (value, isOpen ? 1 : 0) {
            return
        }
        wish.least = (value, isOpen)
    }

    private static func isPossible(_ wish: Wish) -> Bool {
        if let least = wish.least, let most = wish.most {
            if least.value > most.value { return false }
            if least.value == most.value, least.isOpen || most.isOpen { return false }
        }
        if let choice = wish.choice, !choice.contains(where: { fits($0, wish) }) { return false }
        return wish.equal.map { fits($0, wish) } ?? true
    }

    private static func fits(_ value: FieldValue, _ wish: Wish) -> Bool {
        if wish.others.contains(where: { $0 == value && !value.isNull }) { return false }
        if let equal = wish.equal, areOther(equal, value) { return false }
        if let choice = wish.choice, choice.allSatisfy({ areOther($0, value) }) { return false }
        guard let number = number(value) else { return true }
        if let least = wish.least, number < least.value || number == least.value && least.isOpen {
            return false
        }
        if let most = wish.most, number > most.value || number == most.value && most.isOpen {
            return false
        }
        return true
    }

    /// Whether two constants are certainly not the same to any comparison.
    private static func areOther(_ left: FieldValue, _ right: FieldValue) -> Bool {
        if let first = number(left), let second = number(right) { return first != second }
        switch (left, right) {
        case (.string(let first), .string(let second)): return first != second
        case (.string, _) where number(right) != nil: return true
        case (_, .string) where number(left) != nil: return true
        case (.null, .string), (.string, .null): return true
        case (.null, _) where number(right) != nil: return true
        case (_, .null) where number(left) != nil: return true
        default: return false
        }
    }

    /// Numbers that a double holds exactly; whatever else has an order is left alone.
    private static func number(_ value: FieldValue) -> Double? {
        switch value {
        case .integer(let number): number.magnitude <= 1 << 53 ? Double(number) : nil
        case .double(let number): number.isFinite ? number : nil
        default: nil
        }
    }
}
