/// The condition of a query subscription, in any dialect.
///
/// A predicate is a value. Two predicates are equal if their canonical texts are equal, and
/// `try RecordPredicate(format: predicate.canonicalText)` creates an equal predicate. If a
/// comparison has another meaning in its dialect than in NSPredicate, it carries the dialect's
/// ``RuleSet``, which the canonical text contains (`==[:realm]`).
///
/// ```swift
/// let condition = try RecordPredicate(format: "artist == %@", arguments: [.string("a-1")])
/// #expect(condition.canonicalText == #"artist == "a-1""#)
/// #expect(condition.evaluate(on: ["artist": .string("a-1")], engine: RE2Engine()) == .true)
/// #expect(condition.evaluate(on: [:], engine: RE2Engine()) == .false)
/// ```
public struct RecordPredicate: Sendable, Hashable {
    /// The root of the tree.
    public let root: Node

    /// Creates a predicate from a tree, which is converted to its normal form.
    ///
    /// In normal form, an empty AND is true and an empty OR is false. An AND or OR with one member
    /// is that member. Booleans in a comparison under ``RuleSet/apple`` are the integers 1 and 0. A
    /// list of constants is one constant. Nothing is sorted or evaluated.
    public init(_ root: Node) {
        self.root = root.normalized()
    }

    /// A predicate that holds for every record.
    public static let everyRecord = RecordPredicate(.constant(true))
    /// A predicate that holds for no record.
    public static let noRecord = RecordPredicate(.constant(false))

    /// A part of a predicate that has an outcome of its own: true, false or an error.
    public indirect enum Node: Sendable, Hashable {
        /// `TRUEPREDICATE` and `FALSEPREDICATE`.
        case constant(Bool)
        /// One comparison.
        case comparison(Comparison)
        /// An AND of two or more members, evaluated from left to right until one does not hold.
        case and([Node])
        /// An OR of two or more members, evaluated from left to right until one holds.
        case or([Node])
        /// The negation of a member.
        case not(Node)
    }

    /// One comparison: `[quantifier] left operator[options:rules] [quantifier] right`.
    public struct Comparison: Sendable, Hashable {
        /// The quantifier over the elements of the left side.
        ///
        /// `nil` compares the left side itself.
        public var quantifier: Quantifier?
        /// The left side.
        public var left: Expression
        /// The relation between the two sides.
        public var comparator: Comparator
        /// The options for comparing texts.
        public var options: TextOptions
        /// The quantifier over the elements of the right side.
        ///
        /// It is used only under ``RuleSet/realm``.
        public var rightQuantifier: Quantifier?
        /// The right side.
        public var right: Expression
        /// The rules for comparators, nil, kinds and functions in this comparison and in the
        /// expressions of its sides.
        ///
        /// The predicate inside a ``Expression/subquery(_:variable:_:)`` has rules of its own.
        public var rules: RuleSet
        /// The place of the comparison in the text that it was parsed from.
        public var span: SourceSpan
        /// The place of the left side.
        public var leftSpan: SourceSpan
        /// The place of the right side.
        public var rightSpan: SourceSpan

        /// Creates a comparison under Apple's rules.
        ///
        /// Set ``rules`` for those of another dialect.
        public init(
            _ left: Expression, _ comparator: Comparator, _ right: Expression,
            options: TextOptions = [], quantifier: Quantifier? = nil
        ) {
            self.quantifier = quantifier
            self.left = left
            self.comparator = comparator
            self.options = options
            self.right = right
            rules = .apple
            span = .none
            leftSpan = .none
            rightSpan = .none
        }
    }

    /// The number of elements of a collection that must satisfy a comparison.
    public enum Quantifier: String, Sendable, Hashable, CaseIterable {
        /// At least one element. It is false for an empty list. `SOME` is a synonym.
        case any = "ANY"
        /// Every element. It is true for an empty list.
        case all = "ALL"
        /// No element. It is true for an empty list.
        case none = "NONE"
    }

    /// The relation between the two sides of a comparison.
    ///
    /// The raw value is the canonical spelling.
    public enum Comparator: String, Sendable, Hashable, CaseIterable {
        /// The sides are equal.
        case equal = "=="
        /// The sides are not equal.
        case notEqual = "!="
        /// The left side is less.
        case less = "<"
        /// The left side is less or equal.
        case lessOrEqual = "<="
        /// The left side is greater.
        case greater = ">"
        /// The left side is greater or equal.
        case greaterOrEqual = ">="
        /// The left side lies between two bounds, both included.
        case between = "BETWEEN"
        /// The left side is an element of the right side, or a part of its text.
        case `in` = "IN"
        /// The left side contains the right side, as an element or as a part of its text.
        case contains = "CONTAINS"
        /// The left side begins with the text.
        case beginsWith = "BEGINSWITH"
        /// The left side ends with the text.
        case endsWith = "ENDSWITH"
        /// A pattern with `*` and `?` matches the whole left side.
        case like = "LIKE"
        /// A regular expression matches the whole left side.
        case matches = "MATCHES"
        /// The left side contains one of the words, ignoring case, marks and stop words (CloudKit's
        /// token search).
        case tokenMatches = "TOKENMATCHES"
        /// Both sides are the same uniform type identifier, ignoring case.
        case typeEquals = "UTI-EQUALS"
        /// The left side lies inside a shape (RQL's `GEOWITHIN`).
        case geoWithin = "GEOWITHIN"

        /// Whether this is one of the six comparators of equality and order.
        public var isRelational: Bool {
            switch self {
            case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual: true
            default: false
            }
        }
    }

    /// Options for comparing texts: NSPredicate's letters in brackets after an operator.
    public struct TextOptions: OptionSet, Sendable, Hashable {
        /// The options as bits, one for each letter.
        public let rawValue: UInt8

        /// Creates options from their ``rawValue``.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// `c`: ignores case.
        public static let ignoringCase = TextOptions(rawValue: 1)
        /// `d`: ignores the marks of letters.
        public static let ignoringDiacritics = TextOptions(rawValue: 2)
        /// `n`: assumes that both sides are normalised.
        ///
        /// Texts are compared code unit by code unit, and the other letters have no effect.
        public static let normalized = TextOptions(rawValue: 4)
        /// `l`: locale-aware.
        ///
        /// It is kept in the canonical text, but has no effect, because the relay has no locale.
        public static let localeAware = TextOptions(rawValue: 8)

        /// The letters of the options, in the order c, d, n, l.
        public var letters: String {
            var letters = ""
            if contains(.ignoringCase) { letters.append("c") }
            if contains(.ignoringDiacritics) { letters.append("d") }
            if contains(.normalized) { letters.append("n") }
            if contains(.localeAware) { letters.append("l") }
            return letters
        }
    }

    /// The dialect whose rules a comparison follows.
    ///
    /// In the canonical text, the raw value is after a colon in the option brackets:
    /// `name CONTAINS[c:realm] ""`. ``apple`` is not written.
    public enum RuleSet: String, Sendable, Hashable, CaseIterable {
        /// The rules of NSPredicate, which are CloudKit's too.
        case apple
        /// The rules of the Realm Query Language: a list without a quantifier means ANY, every text
        /// contains an empty or nil needle, booleans are not numbers, and a count through nil is 0.
        case realm
        /// The rules of Minapp: booleans are not numbers, and a value of the wrong kind does not
        /// match.
        case minapp
        /// The rules of Firebase: a total order over all kinds, in which nil comes first.
        case firebase
    }
}

/// A range of UTF-8 offsets in the text that a predicate was parsed from.
///
/// Spans do not affect equality: predicates are equal even if they were parsed from different
/// texts.
public struct SourceSpan: Sendable, Hashable {
    /// The offset of the first byte.
    public let offset: Int
    /// The number of bytes.
    public let length: Int

    /// Creates a span, in UTF-8 bytes.
    public init(offset: Int, length: Int) {
        self.offset = offset
        self.length = length
    }

    /// The span of a part that was not parsed from a text.
    public static let none = SourceSpan(offset: 0, length: 0)

    /// Returns `true`, because spans do not affect the equality of predicates.
    public static func == (_: SourceSpan, _: SourceSpan) -> Bool { true }

    /// Does nothing, because all spans are equal.
    public func hash(into _: inout Hasher) {}
}

extension RecordPredicate.Comparison {
    /// Whether the comparison searches all texts of a record, under CloudKit's name `allTokens`.
    var searchesAllTokens: Bool {
        comparator == .tokenMatches && left == .field("allTokens")
    }
}

extension RecordPredicate.Node {
    /// The conditions that must all hold.
    ///
    /// Nested ANDs are joined, as in `(a AND b) AND c`.
    var joinedByAnd: [Self] {
        guard case .and(let nodes) = self else { return [self] }
        return nodes.flatMap(\.joinedByAnd)
    }
}
