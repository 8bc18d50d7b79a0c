import PredicateLanguage
import RelayModel

typealias Node = RecordPredicate.Node
typealias Comparison = RecordPredicate.Comparison

/// A comparison of one field with constants that rows can judge or that at least has keys.
struct Leaf {
    /// The field; empty for the whole record.
    var field: String
    /// The names that lead to a member inside the field.
    var inner: [String] = []
    /// All steps of a path that contains an index, including the field's own.
    ///
    /// ``inner`` is empty then.
    var steps: [RealmStep] = []
    /// How texts are folded before they are compared.
    var folding: TextOptions = []
    var test: RowTest
    /// A scalar; null for ``RowTest/member``.
    var constant: FieldValue
    /// The scalars of ``RowTest/member``.
    var members: [FieldValue] = []
    /// The upper bound of BETWEEN.
    ///
    /// The constant is the lower bound then, and ``test`` is ``RowTest/greaterOrEqual``.
    var upper: FieldValue?
    /// For ``RowTest/reference`` and ``RowTest/like``, what is known about the values for which the
    /// comparison holds.
    var clue: KeyClue?
    /// The view of the values under another dialect's rules; `nil` under NSPredicate's rules.
    var view: ValueView?
    /// Whether the comparison is the negation of this leaf.
    var isTurned = false

    /// Reads a comparison; returns `nil` if only the reference evaluator can judge it and it has no
    /// keys.
    init?(_ comparison: Comparison) {
        guard comparison.rules == .apple else {
            self.init(foreign: comparison)
            return
        }
        guard comparison.rightQuantifier == nil,
            !comparison.options.contains(.normalized)
        else { return nil }
        switch comparison.quantifier {
        case nil: self.init(unquantified: comparison)
        case .any: self.init(any: comparison)
        default: return nil
        }
        fold(comparison.options.subtracting(.localeAware))
    }

    init(_ test: RowTest, _ constant: FieldValue = .null, clue: KeyClue? = nil) {
        field = ""
        self.test = test
        self.constant = constant
        self.clue = clue
    }

    private init?(unquantified comparison: Comparison) {
        if let value = comparison.right.literal {
            switch comparison.left {
            case .path(let path):
                self.init(comparison.comparator, value, comparison.options)
                guard name(path) else { return nil }
            case .call(.distance, let arguments):
                self.init(distance: arguments, comparison.comparator, value)
            default: return nil
            }
        } else if let value = comparison.left.literal, case .path(let path) = comparison.right {
            self.init(mirrored: comparison.comparator, value)
            guard name(path) else { return nil }
        } else {
            return nil
        }
    }

    private init?(any comparison: Comparison) {
        guard case .path(let path) = comparison.left, let value = comparison.right.literal else {
            return nil
        }
        switch (comparison.comparator, value) {
        case (.equal, _) where value.isRowScalar && !value.isNull: self.init(.anyEqual, value)
        case (.in, .list(let values)) where values.allSatisfy { $0.isRowScalar && !$0.isNull }:
            self.init(.reference, clue: .elements(values))
        default: return nil
        }
        guard name(path), !field.isEmpty else { return nil }
    }

    private init?(
        _ comparator: RecordPredicate.Comparator, _ value: FieldValue, _ options: TextOptions
    ) {
        switch comparator {
        case .equal, .notEqual:
            guard value.isRowScalar else { return nil }
            self.init(comparator == .equal ? .equal : .notEqual, value)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            guard value.isRowOrdered else { return nil }
            self.init(RowTest(ordering: comparator), value)
        case .between: self.init(between: value)
        case .in: self.init(member: value)
        case .beginsWith, .endsWith:
            guard case .string = value else { return nil }
            self.init(comparator == .beginsWith ? .begins : .ends, value)
        case .contains:
            guard value.isRowScalar, !value.isNull else { return nil }
            self.init(.has, value)
        default: self.init(pattern: comparator, value, options)
        }
    }

    private init?(mirrored comparator: RecordPredicate.Comparator, _ value: FieldValue) {
        switch comparator {
        case .equal, .notEqual: self.init(comparator, value, [])
        case .less: self.init(.greater, value, [])
        case .lessOrEqual: self.init(.greaterOrEqual, value, [])
        case .greater: self.init(.less, value, [])
        case .greaterOrEqual: self.init(.lessOrEqual, value, [])
        case .in: self.init(.contains, value, [])
        default: return nil
        }
    }

    private init?(between value: FieldValue) {
        guard case .list(let bounds) = value, bounds.count == 2,
            bounds.allSatisfy(\.isRowOrdered), bounds[0].rowClass == bounds[1].rowClass
        else { return nil }
        self.init(.greaterOrEqual, bounds[0])
        upper = bounds[1]
    }

    private init?(member value: FieldValue) {
        switch value {
        case .list(let values): members = values
        case .set(let values): members = Array(values)
        default: return nil
        }
        guard members.allSatisfy(\.isRowScalar) else { return nil }
        (field, test, constant) = ("", .member, .null)
    }

    /// Takes the names of a path, and returns whether it consists of plain members.
    mutating func name(_ path: RecordPredicate.RecordPath) -> Bool {
        if let name = path.fieldName {
            field = name
        } else {
            guard let names = path.memberNames else { return false }
            // For the whole record, only look-ups of words are possible.
            guard let first = names.first else { return takeRecord() }
            field = first
            inner = Array(names.dropFirst())
        }
        return true
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

extension FieldValue {
    /// The class of a constant that rows can hold; `nil` for any other value.
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

    /// Whether rows can compare with this value for equality.
    var isRowScalar: Bool { rowClass != nil }

    /// Whether rows can compare with this value by order.
    var isRowOrdered: Bool {
        switch rowClass {
        case .number, .date, .string: true
        default: false
        }
    }
}
