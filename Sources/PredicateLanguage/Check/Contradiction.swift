import RelayModel

/// Whether a condition asks for two things of which a record can have one only, or for one that
/// none has.
///
/// What is found is certain; much is not looked for. Of comparisons under NSPredicate's rules those
/// of a field with a constant count. Elsewhere a field may be many values, each of which satisfies
/// another comparison: there it must be written down that it is one.
///
/// Of the comparisons of one field it is found that their bounds leave no room, that they ask for
/// values of different kinds (``AskedKinds``), or that the few values that one of them allows do
/// not satisfy the others (``Candidates``).
struct Contradiction {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Comparator = RecordPredicate.Comparator

    /// What somebody wrote down of the fields; `nil` where nobody did, or it is not to count.
    let schema: RecordSchema?
    /// How single values are judged.
    let preparation: Preparation
    /// What may be done still.
    let effort: ContradictionEffort

    /// More comparisons than these are not looked at: the cost grows with their square.
    private static let mostTerms = 200

    func isIn(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): !isTrue
        case .comparison(let comparison): isImpossible(comparison)
        case .or(let nodes): nodes.allSatisfy(isIn)
        case .and(let nodes): nodes.contains(where: isInPart) || clash(Self.joined(nodes))
        case .not(let inner): isAlways(inner) || isError(inner)
        }
    }

    /// The same of a part of what must hold together: what it joins is looked at with the rest, and
    /// not at each depth anew.
    private func isInPart(_ node: Node) -> Bool {
        guard case .and(let nodes) = node else { return isIn(node) }
        return nodes.contains(where: isInPart)
    }

    /// Whether a part can never be false.
    private func isAlways(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): isTrue
        case .comparison(let comparison): isOfItself(comparison, .equal)
        case .not(let inner): isIn(inner)
        case .or(let nodes): isIn(.and(nodes.map { .not($0) }))
        case .and(let nodes): nodes.allSatisfy(isAlways)
        }
    }

    /// What must hold together: a dialect may join two at a time.
    private static func joined(_ nodes: [Node]) -> [Node] {
        var found: [Node] = []
        for node in nodes where found.count < mostTerms {
            switch node {
            case .and(let inner): found += joined(inner)
            case .not(.or(let inner)): found += joined(inner.map { .not($0) })
            default: found.append(node)
            }
        }
        return Array(found.prefix(mostTerms))
    }

    private func isImpossible(_ comparison: Comparison) -> Bool {
        if Self.isOfNil(comparison) || Self.isOfNaN(comparison) || findsNothing(comparison)
            || Self.isOfOneself(comparison) || Self.isOfNothing(comparison)
            || isOfItself(comparison, .notEqual) || isOfConstants(comparison)
            || Self.isOfNoRoom(comparison) || LeastZero.isAskedForLess(comparison)
            || CalculatedKind.isMistaken(comparison) || WholeRecord.isMistaken(comparison)
            || LetterCase.isMistaken(comparison) || isOfFewValues(comparison)
        {
            return true
        }
        guard let term = self.term(comparison) else { return false }
        var wish = self.wish(of: term.path)
        return !wish.take(term)
    }

    private func clash(_ nodes: [Node]) -> Bool {
        var wishes: [RecordPredicate.RecordPath: FieldWish] = [:]
        for node in nodes {
            let isRefused: Bool
            let term: Term?
            switch node {
            case .comparison(let comparison): (isRefused, term) = (false, self.term(comparison))
            case .not(.comparison(let comparison)):
                (isRefused, term) = (true, self.term(comparison))
            default: continue
            }
            guard let term else { continue }
            var wish = wishes[term.path] ?? wish(of: term.path)
            guard isRefused ? wish.refuse(term) : wish.take(term) else { return true }
            wishes[term.path] = wish
        }
        if asksForDifferentKinds(nodes) { return true }
        guard effort.size(of: nodes) != nil else { return false }
        return leavesNoCandidate(nodes) || deniesItself(nodes)
    }

    private func wish(of path: RecordPredicate.RecordPath) -> FieldWish {
        let isCount = path.components.last == .collection(.count) || path.components.last == .size
        return FieldWish(isWhole: isCount || kind(of: .path(path)) == .integer)
    }

    /// The kind of a field, if it was written down and is a single value of that kind.
    ///
    /// A link may stand as an embedded object, and a place as two numbers.
    func kind(of expression: Expression) -> RecordSchema.FieldType? {
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
            // These dialects compare bytes: two spellings of one letter are two texts.
            guard kind(of: .path(term.path)) != nil, Candidates.isOfOneForm(term.value)
            else { return nil }
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

    /// Nothing is equal to what is no number, or less or more, not even another such.
    private static func isOfNaN(_ comparison: Comparison) -> Bool {
        guard isOfAny(comparison), comparison.rules != .firebase else { return false }
        let right = comparison.right.literal
        switch comparison.comparator {
        case .equal, .less, .lessOrEqual, .greater, .greaterOrEqual:
            return [comparison.left.literal, right].contains { $0?.isNoNumber == true }
        case .in:
            guard case .list(let values)? = right else { return false }
            return !values.isEmpty && values.allSatisfy(\.isNoNumber)
        case .between:
            guard case .list(let bounds)? = right else { return false }
            return bounds.contains(where: \.isNoNumber)
        default: return false
        }
    }

    /// Nothing is one of none, whatever it is and however many.
    private static func isOfNothing(_ comparison: Comparison) -> Bool {
        guard comparison.comparator == .in, isOfAny(comparison), comparison.rules != .firebase
        else { return false }
        return switch comparison.right.literal {
        case .list(let values)?: values.isEmpty
        case .set(let values)?: values.isEmpty
        default: false
        }
    }

    /// Nothing lies between bounds of which the lower is above the upper, or is of another kind,
    /// whatever it is that is asked for: an element or a length, too.
    private static func isOfNoRoom(_ comparison: Comparison) -> Bool {
        guard comparison.comparator == .between, isOfAny(comparison),
            case .list(let bounds)? = comparison.right.literal, bounds.count == 2
        else { return false }
        switch comparison.rules {
        case .apple:
            // In which order texts are depends on the options.
            if case .string = bounds[0], !comparison.options.isEmpty { return false }
            let isBackward = try? AppleRules.order(
                bounds[0], bounds[1], [], nilsAreEqual: false, { $0 > 0 })
            return isBackward == true
        case .realm:
            return !bounds.contains(where: \.isNull)
                && !StrictOrder.holds(.lessOrEqual, bounds[0], bounds[1])
        default: return false
        }
    }

    /// NSPredicate finds neither nil nor an empty text in any text.
    private func findsNothing(_ comparison: Comparison) -> Bool {
        guard comparison.rules == .apple, Self.isOfAny(comparison) else { return false }
        let needle = comparison.right.literal
        switch comparison.comparator {
        case .beginsWith, .endsWith: return Self.isNothing(needle)
        case .contains where comparison.left == .record && comparison.quantifier == nil:
            // It asks for any of the words.
            guard case .string(let text)? = needle else { return false }
            return TokenSearch.words(of: text).isEmpty
        case .contains: return Self.isNothing(needle) && kind(of: comparison.left) == .string
        case .in:
            if case .string("")? = needle { return true }
            return Self.isNothing(comparison.left.literal) && kind(of: comparison.right) == .string
        case .like, .matches: return needle?.isNull == true
        case .tokenMatches:
            if case .list(let values)? = needle { return values.allSatisfy(Self.hasNoWord) }
            return needle.map(Self.hasNoWord) ?? false
        default: return false
        }
    }

    /// Whether a search for the words of a value searches none: what is no text has none.
    private static func hasNoWord(_ value: FieldValue) -> Bool {
        guard case .string(let text) = value else { return true }
        return TokenSearch.words(of: text).isEmpty
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

    /// Whether a field is compared with itself as nothing is.
    ///
    /// It is neither less nor more than itself, and equal to itself where it is no number: one of
    /// these, NaN, is equal to none.
    private func isOfItself(_ comparison: Comparison, _ comparator: Comparator) -> Bool {
        guard comparison.left == comparison.right, comparison.quantifier == nil,
            comparison.rightQuantifier == nil, case .path(let path) = comparison.left,
            path.memberNames?.isEmpty == false
        else { return false }
        let kind = kind(of: comparison.left)
        switch comparison.comparator {
        case comparator: return kind != nil && kind != .double
        case .less, .greater:
            return comparator == .notEqual && (comparison.rules == .apple || kind != nil)
        default: return false
        }
    }

    /// Whether two constants are compared, and do not satisfy it.
    ///
    /// What might be a field in quotes is told otherwise.
    private func isOfConstants(_ comparison: Comparison) -> Bool {
        guard let left = comparison.left.literal, let right = comparison.right.literal,
            comparison.rules != .firebase
        else { return false }
        for case .string in [left, right] { return false }
        guard let part = try? PreparedNode(.comparison(comparison), preparation) else {
            return false
        }
        let steps = effort.left * ContradictionEffort.stepsPerComparison
        let meter = StepMeter(limit: min(steps, Limits.maximumEvaluationSteps))
        var evaluation = Evaluation(record: .map([:]), variables: [:], now: nil, meter: meter)
        let outcome = evaluation.outcome(of: part)
        guard effort.allows(meter.taken / ContradictionEffort.stepsPerComparison),
            outcome != .error(.budgetExceeded)
        else { return false }
        return outcome != .true
    }

    /// Whether one part is what another denies.
    private func deniesItself(_ nodes: [Node]) -> Bool {
        let denied = nodes.compactMap { node in
            if case .not(let inner) = node { inner } else { nil }
        }
        // A variable may have another value at its second place.
        guard !denied.isEmpty, !nodes.contains(where: \.assigns) else { return false }
        let there = Set(nodes.map(Self.written))
        return denied.contains { there.contains(Self.written($0)) }
    }

    /// A part in bytes: texts that Unicode takes for the same are two where a dialect compares them
    /// by theirs.
    private static func written(_ node: Node) -> [UInt8] {
        Array(RecordPredicate(node).canonicalText.utf8)
    }

    // MARK: Comparisons of one field

    /// A field, a comparator and a constant, in this order.
    struct Term {
        let path: RecordPredicate.RecordPath
        let comparator: Comparator
        let value: FieldValue
        /// Whether texts have the order that Swift's have.
        let isApple: Bool

        init?(_ comparison: Comparison) {
            isApple = comparison.rules == .apple
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
            guard let last = path.components.last,
                path.components.dropLast().allSatisfy(Self.isMember),
                Self.isMember(last) || isApple && Self.isOneValue(last)
            else { return nil }
        }

        private static func isMember(_ part: RecordPredicate.RecordPath.Component) -> Bool {
            if case .member = part { true } else { false }
        }

        /// Whether the end of a path leads to one value of each record, or to none.
        private static func isOneValue(_ part: RecordPredicate.RecordPath.Component) -> Bool {
            switch part {
            case .first, .last, .size, .collection(.count), .element(.constant): true
            default: false
            }
        }

        private static let mirrored: [Comparator: Comparator] = [
            .equal: .equal, .notEqual: .notEqual, .less: .greater, .lessOrEqual: .greaterOrEqual,
            .greater: .less, .greaterOrEqual: .lessOrEqual,
        ]
    }
}

private extension FieldValue {
    /// Whether it is a number that is none.
    var isNoNumber: Bool {
        if case .double(let number) = self { number.isNaN } else { false }
    }
}
