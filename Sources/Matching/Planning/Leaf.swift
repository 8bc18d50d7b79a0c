import PredicateLanguage
import RelayModel

typealias Node = RecordPredicate.Node
typealias Comparison = RecordPredicate.Comparison

/// A comparison that rows can judge: one field against constants.
struct Leaf {
    var field: String
    /// The number of the field's path, once it is known.
    var path = 0
    var test: RowTest
    /// A scalar; nil for ``RowTest/member``.
    var constant: FieldValue
    /// The scalars of ``RowTest/member``.
    var members: [FieldValue] = []
    /// The upper bound of BETWEEN, whose lower bound is the constant (and ``test`` is
    /// ``RowTest/greaterOrEqual``).
    var upper: FieldValue?

    /// Reads a comparison; `nil` if only the reference evaluator can judge it.
    init?(_ comparison: Comparison) {
        guard comparison.rules == .apple, comparison.rightQuantifier == nil,
            comparison.options.subtracting(.localeAware).isEmpty
        else { return nil }
        switch comparison.quantifier {
        case nil: self.init(unquantified: comparison)
        case .any: self.init(any: comparison)
        default: return nil
        }
    }

    private init(field: String, _ test: RowTest, _ constant: FieldValue) {
        self.field = field
        self.test = test
        self.constant = constant
    }

    private init?(unquantified comparison: Comparison) {
        if let field = comparison.left.fieldName, let value = comparison.right.literal {
            self.init(field, comparison.comparator, value)
        } else if let field = comparison.right.fieldName, let value = comparison.left.literal {
            self.init(mirrored: field, comparison.comparator, value)
        } else {
            return nil
        }
    }

    private init?(any comparison: Comparison) {
        guard comparison.comparator == .equal else { return nil }
        guard let field = comparison.left.fieldName, let value = comparison.right.literal,
            value.isRowScalar, !value.isNull
        else {
            return nil
        }
        self.init(field: field, .anyEqual, value)
    }

    private init?(_ field: String, _ comparator: RecordPredicate.Comparator, _ value: FieldValue) {
        switch comparator {
        case .equal, .notEqual:
            guard value.isRowScalar else { return nil }
            self.init(field: field, comparator == .equal ? .equal : .notEqual, value)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard value.isRowOrdered else { return nil }
            self.init(field: field, RowTest(ordering: comparator), value)
        case .between: self.init(between: field, value)
        case .in: self.init(member: field, value)
        case .beginsWith, .endsWith:
            guard case .string = value else { return nil }
            self.init(field: field, comparator == .beginsWith ? .begins : .ends, value)
        case .contains:
            guard case .string = value else { return nil }
            self.init(field: field, .has, value)
        default: return nil
        }
    }

    private init?(
        mirrored field: String, _ comparator: RecordPredicate.Comparator, _ value: FieldValue
    ) {
        switch comparator {
        case .equal, .notEqual: self.init(field, comparator, value)
        case .less: self.init(field, .greater, value)
        case .lessOrEqual: self.init(field, .greaterOrEqual, value)
        case .greater: self.init(field, .less, value)
        case .greaterOrEqual: self.init(field, .lessOrEqual, value)
        case .in: self.init(field, .contains, value)
        default: return nil
        }
    }

    private init?(between field: String, _ value: FieldValue) {
        guard case .list(let bounds) = value, bounds.count == 2,
            bounds.allSatisfy(\.isRowOrdered), bounds[0].rowClass == bounds[1].rowClass
        else { return nil }
        self.init(field: field, .greaterOrEqual, bounds[0])
        upper = bounds[1]
    }

    private init?(member field: String, _ value: FieldValue) {
        switch value {
        case .list(let values):
            guard values.allSatisfy(\.isRowScalar) else { return nil }
            self.init(field: field, .member, .null)
            members = values
        case .set(let values):
            guard values.allSatisfy(\.isRowScalar) else { return nil }
            self.init(field: field, .member, .null)
            members = Array(values)
        default: return nil
        }
    }

    /// Whether the comparison never has an evaluation error.
    var isSafe: Bool {
        switch test {
        case .equal, .notEqual, .member: true
        default: false
        }
    }
}

extension RowTest {
    init(ordering comparator: RecordPredicate.Comparator) {
        self =
            switch comparator {
            case .less: .less
            case .lessOrEqual: .lessOrEqual
            case .greater: .greater
            default: .greaterOrEqual
            }
    }
}

extension RecordPredicate.Expression {
    /// The name, if this is a field of the record.
    var fieldName: String? {
        if case .path(let path) = self { path.fieldName } else { nil }
    }
}

extension FieldValue {
    /// The class of a constant that rows can hold, or `nil`.
    var rowClass: ValueClass? {
        switch self {
        case .null: .null
        case .bool, .integer: .number
        case .double(let number): number.isNaN ? nil : .number
        case .string: .string
        case .timestamp(let moment): moment.isExact ? .date : nil
        case .bytes: .bytes
        case .reference: .reference
        case .location: .location
        case .uuid: .uuid
        case .objectID: .objectID
        case .list, .set, .map: nil
        }
    }

    /// Whether rows can compare it for equality.
    var isRowScalar: Bool { rowClass != nil }

    /// Whether rows can compare by its order.
    var isRowOrdered: Bool {
        switch rowClass {
        case .number, .date, .string: true
        default: false
        }
    }
}

extension RecordPredicate.Node {
    /// Whether some expression binds a variable for comparisons after it, which ties them together.
    var bindsVariables: Bool {
        switch self {
        case .constant: false
        case .comparison(let comparison):
            comparison.left.bindsVariables || comparison.right.bindsVariables
        case .and(let nodes), .or(let nodes): nodes.contains { $0.bindsVariables }
        case .not(let node): node.bindsVariables
        }
    }
}

extension RecordPredicate.Expression {
    /// Whether it contains an assignment.
    var bindsVariables: Bool {
        switch self {
        case .assignment: true
        case .constant, .variable, .anyKey: false
        case .path(let path): path.expressions.contains { $0.bindsVariables }
        case .member(let base, let path):
            base.bindsVariables || path.expressions.contains { $0.bindsVariables }
        case .list(let elements), .call(_, let elements): elements.contains { $0.bindsVariables }
        case .arithmetic(_, let left, let right): left.bindsVariables || right.bindsVariables
        case .negative(let inner), .complement(let inner), .cast(let inner, _):
            inner.bindsVariables
        case .conditional(let node, let yes, let other):
            node.bindsVariables || yes.bindsVariables || other.bindsVariables
        case .subquery(let list, _, let node): list.bindsVariables || node.bindsVariables
        }
    }

    /// Adds the fields of the record that it reads; says whether these are all that can be.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant, .variable: return true
        case .anyKey: return false
        case .path(let path):
            guard case .member(let name)? = path.components.first else { return false }
            fields.insert(name)
            return path.expressions.allSatisfy { $0.collectFields(&fields) }
        case .member(let base, let path):
            return base.collectFields(&fields)
                && path.expressions.allSatisfy { $0.collectFields(&fields) }
        case .list(let elements), .call(_, let elements):
            return elements.allSatisfy { $0.collectFields(&fields) }
        case .arithmetic(_, let left, let right):
            return left.collectFields(&fields) && right.collectFields(&fields)
        case .negative(let inner), .complement(let inner), .cast(let inner, _),
            .assignment(_, let inner):
            return inner.collectFields(&fields)
        case .conditional(let node, let yes, let other):
            return node.collectFields(&fields) && yes.collectFields(&fields)
                && other.collectFields(&fields)
        case .subquery(let list, _, let node):
            return list.collectFields(&fields) && node.collectFields(&fields)
        }
    }
}

extension RecordPredicate.Node {
    /// Adds the fields of the record that it reads; says whether these are all that can be.
    func collectFields(_ fields: inout Set<String>) -> Bool {
        switch self {
        case .constant: true
        case .comparison(let comparison):
            comparison.left.collectFields(&fields) && comparison.right.collectFields(&fields)
        case .and(let nodes), .or(let nodes): nodes.allSatisfy { $0.collectFields(&fields) }
        case .not(let node): node.collectFields(&fields)
        }
    }
}

extension RecordPredicate.RecordPath {
    /// The expressions inside index brackets.
    var expressions: [RecordPredicate.Expression] {
        components.compactMap { component in
            if case .element(let index) = component { index } else { nil }
        }
    }
}
