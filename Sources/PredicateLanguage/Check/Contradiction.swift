import RelayModel

/// Whether a condition asks for two things of which a record can have one only, or for one that
/// none has.
///
/// What is found is certain; much is not looked for. Of comparisons under NSPredicate's rules those
/// of a field with a constant count. Elsewhere a field may be many values, each of which satisfies
/// another comparison: there it must be written down that it is one.
struct Contradiction {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Comparator = RecordPredicate.Comparator

    /// What somebody wrote down of the fields; `nil` where nobody did, or it is not to count.
    let schema: RecordSchema?

    /// What a field must be.
    private struct Wish {
        /// Whether its numbers have no fraction.
        let isWhole: Bool
        var equal: FieldValue?
        var others: [FieldValue] = []
        var choice: [FieldValue]?
        var least: (value: Double, isOpen: Bool)?
        var most: (value: Double, isOpen: Bool)?
    }

    /// More comparisons than these are not looked at: the cost grows with their square.
    private static let mostTerms = 200

    func isIn(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): !isTrue
        case .comparison(let comparison): isImpossible(comparison)
        case .or(let nodes): nodes.allSatisfy(isIn)
        case .and(let nodes): nodes.contains(where: isIn) || clash(Self.joined(nodes))
        case .not(.constant(let isTrue)): isTrue
        case .not: false
        }
    }

    /// What must hold together: a dialect may join two at a time.
    private static func joined(_ nodes: [Node]) -> [Node] {
        var found: [Node] = []
        for node in nodes where found.count < mostTerms {
            if case .and(let inner) = node { found += joined(inner) } else { found.append(node) }
        }
        return Array(found.prefix(mostTerms))
    }

    private func isImpossible(_ comparison: Comparison) -> Bool {
        if Self.isOfNil(comparison) || findsNothing(comparison) || Self.isOfOneself(comparison) {
            return true
        }
        guard let term = self.term(comparison) else { return false }
        var wish = self.wish(of: term.path)
        return !Self.take(term, into: &wish)
    }

    private func clash(_ nodes: [Node]) -> Bool {
        var wishes: [RecordPredicate.RecordPath: Wish] = [:]
        for node in nodes {
            guard case .comparison(let comparison) = node, let term = self.term(comparison)
            else { continue }
            let isPossible = Self.take(
                term, into: &wishes[term.path, default: wish(of: term.path)])
            guard isPossible else { return true }
        }
        return false
    }

    private func wish(of path: RecordPredicate.RecordPath) -> Wish {
        Wish(isWhole: kind(of: .path(path)) == .integer)
    }

    /// The kind of a field, if it was written down and is a single value of that kind.
    ///
    /// A link may stand as an embedded object, and a place as two numbers.
    private func kind(of expression: Expression) -> RecordSchema.FieldType? {
        guard case .path(let path) = expression, let name = path.fieldName,
            let type = schema?.fields[name]?.type ?? RecordSchema.systemFields[name]
        else { return nil }
        switch type {
        case .string, .integer, .double, .boolean, .timestamp, .bytes, .uuid, .objectID:
            return type
        case .reference, .location, .list, .map, .mixed: return nil
        }
    }

    /// The term of a comparison, if nothing but its field decides on it.
    private func term(_ comparison: Comparison) -> Term? {
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil,
            comparison.options.isEmpty, let term = Term(comparison)
        else { return nil }
        switch comparison.rules {
        case .apple: return term
        case .firebase: return nil
        case .realm, .minapp:
            guard kind(of: .path(term.path)) != nil else { return nil }
            if term.comparator == .in || term.comparator == .between { return term }
            // A list of constants means any of them.
            return term.value.elements == nil ? term : nil
        }
    }

    // MARK: Single comparisons

    /// Whether at most one value of the left side must satisfy it: none of an empty list does.
    private static func isOfAny(_ comparison: Comparison) -> Bool {
        (comparison.quantifier ?? .any) == .any && comparison.rightQuantifier == nil
    }

    /// Nothing is less or more than nil, and in NSPredicate nothing lies between it and another.
    private static func isOfNil(_ comparison: Comparison) -> Bool {
        guard isOfAny(comparison) else { return false }
        switch (comparison.comparator, comparison.rules) {
        case (.less, .apple), (.greater, .apple):
            return comparison.left.literal?.isNull == true
                || comparison.right.literal?.isNull == true
        case (.less, .realm), (.greater, .realm):
            // Other paths than those of members have meanings of their own.
            guard case .path(let path) = comparison.left, path.memberNames != nil else {
                return false
            }
            return comparison.right.literal?.isNull == true
        case (.between, .apple):
            guard case .list(let bounds)? = comparison.right.literal else { return false }
            return bounds.contains(where: \.isNull)
        default: return false
        }
    }

    /// NSPredicate finds neither nil nor an empty text in any text.
    private func findsNothing(_ comparison: Comparison) -> Bool {
        guard comparison.rules == .apple, Self.isOfAny(comparison) else { return false }
        let needle = comparison.right.literal
        switch comparison.comparator {
        case .beginsWith, .endsWith: return Self.isNothing(needle)
        case .contains: return Self.isNothing(needle) && kind(of: comparison.left) == .string
        case .in:
            if case .string("")? = needle { return true }
            return Self.isNothing(comparison.left.literal) && kind(of: comparison.right) == .string
        case .like, .matches: return needle?.isNull == true
        case .tokenMatches:
            guard case .string(let text)? = needle else { return needle?.isNull == true }
            return TokenSearch.words(of: text).isEmpty
        default: return false
        }
    }

    private static func isNothing(_ needle: FieldValue?) -> Bool {
        switch needle {
        case .null?, .string("")?: true
        default: false
        }
    }

    /// CloudKit's native classes show the user's own name as `__defaultOwner__`; records have the
    /// name that the user's token says.
    static func isOfOneself(_ comparison: Comparison) -> Bool {
        guard comparison.comparator == .equal, isOfAny(comparison) else { return false }
        return isOneself(comparison.left, comparison.right)
            || isOneself(comparison.right, comparison.left)
    }

    private static func isOneself(_ field: Expression, _ value: Expression) -> Bool {
        guard case .path(let path) = field, let name = path.memberNames?.first else { return false }
        switch SystemField(named: name) {
        case .creator?, .creatorName?, .modifier?, .modifierName?: break
        default: return false
        }
        switch value.literal {
        case .string(oneself)?: return true
        case .reference(let reference)?:
            return reference.recordID.recordName.rawValue == oneself
        default: return false
        }
    }

    /// `CKCurrentUserDefaultName`.
    private static let oneself = "__defaultOwner__"

    // MARK: Comparisons of one field

    /// A field, a comparator and a constant, in this order.
    private struct Term {
        let path: RecordPredicate.RecordPath
        let comparator: Comparator
        let value: FieldValue

        init?(_ comparison: Comparison) {
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

    private static func lower(_ wish: inout Wish, _ bound: Double, isOpen: Bool) {
        var (value, isOpen) = (bound, isOpen)
        if wish.isWhole {
            value = isOpen ? bound.rounded(.up) - 1 : bound.rounded(.down)
            isOpen = false
        }
        if let most = wish.most, (most.value, most.isOpen ? 0 : 1) < (value, isOpen ? 0 : 1) {
            return
        }
        wish.most = (value, isOpen)
    }

    private static func raise(_ wish: inout Wish, _ bound: Double, isOpen: Bool) {
        var (value, isOpen) = (bound, isOpen)
        if wish.isWhole {
            value = isOpen ? bound.rounded(.down) + 1 : bound.rounded(.up)
            isOpen = false
        }
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
        // Nil has no order.
        if value.isNull { return wish.least == nil && wish.most == nil }
        guard let number = number(value) else { return true }
        if wish.isWhole, number != number.rounded() { return false }
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
        case (.timestamp(let first), .timestamp(let second)): return first != second
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
