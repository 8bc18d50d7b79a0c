import PredicateLanguage
import RelayModel

// Comparisons under Realm's and Minapp's rules. If a comparison needs a rule that rows do not
// follow, there is no leaf, and the reference evaluator judges it.
extension Leaf {
    /// Reads a comparison under the rules of another dialect.
    init?(foreign comparison: Comparison) {
        guard comparison.rightQuantifier == nil else { return nil }
        switch comparison.rules {
        case .realm: self.init(realm: comparison)
        case .minapp: self.init(minapp: comparison)
        case .apple, .firebase: return nil
        }
    }

    // MARK: Minapp

    private init?(minapp comparison: Comparison) {
        guard comparison.quantifier == nil, comparison.options.isEmpty,
            case .path(let path) = comparison.left, let value = comparison.right.literal,
            value.isViewScalar, !value.isNamedByText
        else { return nil }
        switch comparison.comparator {
        case .equal: self.init(.equal, value)
        // Minapp requires that no element is equal, whereas Realm requires one that is not.
        case .notEqual:
            self.init(.equal, value)
            isTurned = true
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard value.isViewOrdered else { return nil }
            self.init(RowTest(ordering: comparison.comparator), value)
        default: return nil
        }
        view = .minapp
        guard name(path), !field.isEmpty else { return nil }
    }

    // MARK: Realm

    private init?(realm comparison: Comparison) {
        guard comparison.comparator != .geoWithin else {
            self.init(realmPlaces: comparison)
            return
        }
        guard comparison.options.isSubset(of: .ignoringCase) else { return nil }
        let path: RecordPredicate.RecordPath
        switch (comparison.left, comparison.right) {
        case (.path(let left), .constant(let value)):
            path = left
            switch comparison.quantifier {
            case nil: self.init(realm: comparison.comparator, value, comparison.options)
            case .any: self.init(realmAny: comparison.comparator, value)
            default: return nil
            }
        case (.constant(let value), .path(let right)) where comparison.quantifier == nil:
            path = right
            self.init(realmMirrored: comparison.comparator, value)
        default: return nil
        }
        // Comparisons by order and intervals ignore the case option.
        let isFolded = !comparison.options.isEmpty && !test.isOrdering && !isBetween
        view = isFolded ? .realmFolded : .realm
        guard follow(path) else { return nil }
    }

    /// Reads GEOWITHIN, which the evaluator judges after a look-up in the cells of its circles.
    private init?(realmPlaces comparison: Comparison) {
        guard comparison.quantifier == nil || comparison.quantifier == .any,
            case .path(let path) = comparison.left, let circles = comparison.right.realmCircles
        else { return nil }
        self.init(.reference, clue: .nearOne(circles))
        view = .realmPlaces
        guard follow(path) else { return nil }
    }

    /// Takes the names or steps of a path, and returns whether the path can be decoded.
    private mutating func follow(_ path: RecordPredicate.RecordPath) -> Bool {
        if !name(path) {
            guard takeSteps(of: path) else { return false }
        }
        return !field.isEmpty
    }

    /// Takes the steps of a path that contains indexes, and returns whether the path can be
    /// decoded.
    private mutating func takeSteps(of path: RecordPredicate.RecordPath) -> Bool {
        guard let steps = path.realmSteps, case .member(let name)? = steps.first else {
            return false
        }
        field = name
        self.steps = steps
        return true
    }

    private var isBetween: Bool {
        if case .between = clue { true } else { false }
    }

    private init?(
        realm comparator: RecordPredicate.Comparator, _ value: FieldValue, _ options: TextOptions
    ) {
        switch (comparator, value) {
        case (.equal, .reference(let reference)): self.init(links: [reference])
        case (.equal, _) where value.isViewScalar: self.init(.equal, value)
        case (.notEqual, _) where value.isViewScalar: self.init(.notEqual, value)
        case (.less, _), (.lessOrEqual, _), (.greater, _), (.greaterOrEqual, _):
            guard value.isViewOrdered else { return nil }
            self.init(RowTest(ordering: comparator), value)
        case (.between, .list(let bounds)): self.init(realmBounds: bounds)
        case (.in, .list(let values)): self.init(realmMembers: values)
        case (.beginsWith, .string): self.init(.begins, value)
        case (.endsWith, .string): self.init(.ends, value)
        case (.contains, .string): self.init(.has, value)
        case (.like, .string(let text)): self.init(realmPattern: text, options)
        default: return nil
        }
    }

    private init?(realmAny comparator: RecordPredicate.Comparator, _ value: FieldValue) {
        switch (comparator, value) {
        case (.equal, .reference(let reference)): self.init(links: [reference])
        case (.equal, _) where value.isViewScalar && !value.isNull: self.init(.anyEqual, value)
        case (.in, .list(let values)) where values.allSatisfy { $0.isViewScalar && !$0.isNull }:
            self.init(.reference, clue: .elements(values))
        default: return nil
        }
    }

    private init?(realmMirrored comparator: RecordPredicate.Comparator, _ value: FieldValue) {
        switch comparator {
        case .equal, .notEqual: self.init(realm: comparator, value, [])
        case .less: self.init(realm: .greater, value, [])
        case .lessOrEqual: self.init(realm: .greaterOrEqual, value, [])
        case .greater: self.init(realm: .less, value, [])
        case .greaterOrEqual: self.init(realm: .lessOrEqual, value, [])
        // `IN` with a constant on the left looks for an element; a right side that is not a list is
        // an evaluation error.
        case .in: self.init(realmAny: .equal, value)
        default: return nil
        }
    }

    /// Reads a comparison with records.
    ///
    /// A record may carry an object in the place of a reference, which may be the one in question.
    /// So every record with an object of that name is a candidate.
    private init?(links references: [RecordReference]) {
        self.init(.reference, clue: .links(references.map(\.recordID.recordName.rawValue)))
    }

    private init?(realmMembers values: [FieldValue]) {
        if values.allSatisfy(\.isViewScalar) {
            self.init(.member)
            members = values
            return
        }
        let references = values.compactMap { value in
            if case .reference(let reference) = value { reference } else { nil }
        }
        guard references.count == values.count else { return nil }
        self.init(links: references)
    }

    /// BETWEEN has no answer for lists, unlike two comparisons, so it does not become an interval.
    private init?(realmBounds bounds: [FieldValue]) {
        guard bounds.count == 2, bounds.allSatisfy(\.isViewOrdered),
            let kind = bounds[0].rowClass, kind != .string, kind == bounds[1].rowClass
        else { return nil }
        self.init(.reference, clue: .between(bounds[0], bounds[1]))
    }

    private init?(realmPattern text: String, _ options: TextOptions) {
        let folded =
            options.isEmpty ? text : IndexedText.realmText(.string(text), ignoringCase: true)
        let clue = PatternText(folded, escapesAnything: true).clue
        let isRow = folded.utf8.count <= PatternText.longestRow
        guard clue != nil || isRow else { return nil }
        self.init(isRow ? .like : .reference, .string(folded), clue: clue)
    }
}

extension FieldValue {
    /// Whether the value can be a constant in a view.
    ///
    /// This holds for everything that rows can hold, except references, whose equality rows do not
    /// fully implement.
    var isViewScalar: Bool {
        if case .reference = self { false } else { isRowScalar }
    }

    /// Whether a text represents the value in Minapp's view, so that rows cannot tell the two
    /// apart.
    var isNamedByText: Bool {
        switch self {
        case .uuid, .objectID: true
        default: false
        }
    }

    /// Whether values in a view can be compared with this value by their order in rows.
    var isViewOrdered: Bool {
        if case .bool = self { false } else { isRowOrdered }
    }
}
