import RelayModel

/// Finds conditions that no record can satisfy: conditions that require two things which exclude
/// each other, or one thing that no record has.
///
/// A finding is certain, but many contradictions are not looked for. Under NSPredicate's rules,
/// comparisons of a field with a constant count. In other dialects a field may have many values,
/// each of which satisfies a different comparison. There a field counts only if the schema declares
/// it as a single value.
///
/// The comparisons of one field contradict each other if their bounds leave no room, if they ask
/// for values of different kinds (``AskedKinds``), or if the few values that one of them allows do
/// not satisfy the others (``Candidates``).
struct Contradiction {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Comparator = RecordPredicate.Comparator

    /// The declared schema of the record type, or `nil` if there is none or it must be ignored.
    let schema: RecordSchema?
    /// The context for evaluating single values.
    let preparation: Preparation
    /// The remaining effort for this condition.
    let effort: ContradictionEffort

    /// The maximum number of comparisons to look at, because the cost grows with their square.
    private static let mostTerms = 200

    /// Returns whether no record can satisfy `node`.
    func isIn(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): !isTrue
        case .comparison(let comparison): isImpossible(comparison)
        case .or(let nodes): nodes.allSatisfy(isIn)
        case .and(let nodes): nodes.contains(where: isInPart) || clash(Self.joined(nodes))
        case .not(let inner): isAlways(inner) || isError(inner)
        }
    }

    /// Returns whether a part of an AND is impossible on its own; `clash` judges nested ANDs with
    /// the rest, so they are not examined again at each depth.
    private func isInPart(_ node: Node) -> Bool {
        guard case .and(let nodes) = node else { return isIn(node) }
        return nodes.contains(where: isInPart)
    }

    /// Returns whether a part can never be false.
    private func isAlways(_ node: Node) -> Bool {
        switch node {
        case .constant(let isTrue): isTrue
        case .comparison(let comparison): isOfItself(comparison, .equal)
        case .not(let inner): isIn(inner)
        case .or(let nodes): isIn(.and(nodes.map { .not($0) }))
        case .and(let nodes): nodes.allSatisfy(isAlways)
        }
    }

    /// Returns the parts that must hold together, with nested ANDs flattened: some dialects join
    /// only two parts at a time.
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
            || LetterCase.isMistaken(comparison) || NamelessRecord.isAskedFor(comparison)
            || isOfFewValues(comparison)
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

    /// Returns the kind of a field, if the schema declares it as a single value of that kind.
    ///
    /// A reference may be stored as an embedded object, and a location as two numbers, so neither
    /// counts.
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

    /// Returns the comparison as a term, if its field alone decides on it.
    private func term(_ comparison: Comparison) -> Term? {
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil,
            comparison.options.isEmpty, let term = Term(comparison)
        else { return nil }
        switch comparison.rules {
        case .apple: return term
        case .firebase: return nil
        case .realm, .minapp:
            // These dialects compare bytes, so two spellings of one letter are different texts.
            guard kind(of: .path(term.path)) != nil, Candidates.isOfOneForm(term.value)
            else { return nil }
            if term.comparator == .in || term.comparator == .between { return term }
            // A list of constants means any of its elements.
            return term.value.elements == nil ? term : nil
        }
    }

    // MARK: Single comparisons

    /// Returns whether some value must satisfy the comparison, so that an empty list never does.
    private static func isOfAny(_ comparison: Comparison) -> Bool {
        (comparison.quantifier ?? .any) == .any && comparison.rightQuantifier == nil
    }

    /// Returns whether a comparison orders values against nil, or, under NSPredicate's rules, asks
    /// for values between bounds of which one is nil.
    private static func isOfNil(_ comparison: Comparison) -> Bool {
        guard isOfAny(comparison) else { return false }
        switch (comparison.comparator, comparison.rules) {
        case (.less, .apple), (.greater, .apple):
            return comparison.left.literal?.isNull == true
                || comparison.right.literal?.isNull == true
        case (.less, .realm), (.greater, .realm):
            // Paths with other components than members treat nil in their own way.
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

    /// Returns whether a comparison is with NaN, to which nothing is equal, less or greater.
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

    /// Returns whether a comparison requires a value to be in an empty collection.
    private static func isOfNothing(_ comparison: Comparison) -> Bool {
        guard comparison.comparator == .in, isOfAny(comparison), comparison.rules != .firebase
        else { return false }
        return switch comparison.right.literal {
        case .list(let values)?: values.isEmpty
        case .set(let values)?: values.isEmpty
        default: false
        }
    }

    /// Returns whether no value lies between the bounds, because the lower one is above the upper
    /// one, or they are of different kinds.
    ///
    /// This holds for every left side, for example for an element or a length.
    private static func isOfNoRoom(_ comparison: Comparison) -> Bool {
        guard comparison.comparator == .between, isOfAny(comparison),
            case .list(let bounds)? = comparison.right.literal, bounds.count == 2
        else { return false }
        switch comparison.rules {
        case .apple:
            // The options determine the order of texts.
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

    /// Returns whether a comparison searches for something that NSPredicate never finds, such as
    /// nil or an empty text in a text.
    private func findsNothing(_ comparison: Comparison) -> Bool {
        guard comparison.rules == .apple, Self.isOfAny(comparison) else { return false }
        let needle = comparison.right.literal
        switch comparison.comparator {
        case .beginsWith, .endsWith: return Self.isNothing(needle)
        case .contains where comparison.left == .record && comparison.quantifier == nil:
            // This form searches for any of the words.
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

    /// Returns whether a value has no words to search for, as every value that is not a text.
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

    /// Returns whether a comparison uses `__defaultOwner__` for the current user.
    ///
    /// CloudKit's native classes show this name for the user, but records contain the name from the
    /// user token.
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

    /// The value of `CKCurrentUserDefaultName`.
    private static let oneself = "__defaultOwner__"

    /// Returns whether the outcome of a comparison of a field with itself is fixed.
    ///
    /// With `.equal` as `comparator`, returns whether the comparison always holds. With
    /// `.notEqual`, returns whether it never holds. A field is neither less nor greater than
    /// itself. It is equal to itself unless it may be a double, because NaN is not equal to itself.
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

    /// Returns whether a comparison of two constants does not hold.
    ///
    /// A text might be a field name in quotes. Another warning covers that case, so texts do not
    /// count here.
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

    /// Returns whether one part is the negation of another part.
    private func deniesItself(_ nodes: [Node]) -> Bool {
        let denied = nodes.compactMap { node in
            if case .not(let inner) = node { inner } else { nil }
        }
        // An assignment can give a variable another value between two equal parts.
        guard !denied.isEmpty, !nodes.contains(where: \.assigns) else { return false }
        let there = Set(nodes.map(Self.written))
        return denied.contains { there.contains(Self.written($0)) }
    }

    /// Returns the bytes of a part's canonical text, because some dialects compare texts by bytes.
    private static func written(_ node: Node) -> [UInt8] {
        Array(RecordPredicate(node).canonicalText.utf8)
    }

    // MARK: Comparisons of one field

    /// A field, a comparator and a constant, in this order.
    struct Term {
        let path: RecordPredicate.RecordPath
        let comparator: Comparator
        let value: FieldValue
        /// Whether texts are ordered as Swift strings are.
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

        /// Returns whether the end of a path leads to at most one value in each record.
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
    /// Whether the value is NaN.
    var isNoNumber: Bool {
        if case .double(let number) = self { number.isNaN } else { false }
    }
}
