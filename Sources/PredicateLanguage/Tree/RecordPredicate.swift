/// The condition of a query subscription, in whichever dialect it was written.
///
/// A predicate is a value: two predicates are equal when their canonical texts are, and
/// `try RecordPredicate(format: predicate.canonicalText)` gives an equal predicate. Where a dialect
/// other than NSPredicate means something else by the same comparison, the comparison carries that
/// dialect's ``RuleSet``, which the canonical text shows (`==[:realm]`).
///
/// ```swift
/// let condition = try RecordPredicate(format: "artist == %@", arguments: [.string("a-1")])
/// #expect(condition.canonicalText == #"artist == "a-1""#)
/// #expect(condition.evaluate(on: ["artist": .string("a-1")], engine: RE2Engine()) == .true)
/// #expect(condition.evaluate(on: [:], engine: RE2Engine()) == .false)
/// ```
public struct RecordPredicate: Sendable, Hashable {
    /// The top of the tree.
    public let root: Node

    /// Creates a predicate from a tree, which it brings into normal form.
    ///
    /// An AND of nothing becomes true, an OR of nothing false, and one of a single member becomes
    /// that member; a comparison under ``RuleSet/apple`` gets booleans as the integers 1 and 0; a
    /// list of constants becomes a constant. Nothing is sorted and nothing is evaluated.
    public init(_ root: Node) {
        self.root = root.normalized()
    }

    /// Holds for every record.
    public static let everyRecord = RecordPredicate(.constant(true))
    /// Holds for no record.
    public static let noRecord = RecordPredicate(.constant(false))

    /// A part of a predicate that is true, false or an error on its own.
    public indirect enum Node: Sendable, Hashable {
        /// `TRUEPREDICATE` and `FALSEPREDICATE`.
        case constant(Bool)
        /// One comparison.
        case comparison(Comparison)
        /// All of two or more, judged from left to right until one fails.
        case and([Node])
        /// Any of two or more, judged from left to right until one holds.
        case or([Node])
        /// The contrary.
        case not(Node)
    }

    /// `[quantifier] left operator[options:rules] [quantifier] right`.
    public struct Comparison: Sendable, Hashable {
        /// Which elements of the left side must satisfy the comparison; `nil` compares the side
        /// itself.
        public var quantifier: Quantifier?
        /// The left side.
        public var left: Expression
        /// What is asked of the two sides.
        public var comparator: Comparator
        /// How texts are compared.
        public var options: TextOptions
        /// Which elements of the right side are meant; only under ``RuleSet/realm``.
        public var rightQuantifier: Quantifier?
        /// The right side.
        public var right: Expression
        /// Whose rules decide what the comparator, nil, kinds and functions mean, in this
        /// comparison and in the expressions of its sides. (The predicate inside a
        /// ``Expression/subquery(_:variable:_:)`` has its own.)
        public var rules: RuleSet
        /// Where the comparison stands in the text that it came from.
        public var span: SourceSpan
        /// Where its left side stands.
        public var leftSpan: SourceSpan
        /// Where its right side stands.
        public var rightSpan: SourceSpan

        /// The comparison follows Apple's rules; set ``rules`` for those of another dialect.
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

    /// How many elements of a collection must satisfy a comparison.
    public enum Quantifier: String, Sendable, Hashable, CaseIterable {
        /// One at least; false for an empty list. `SOME` reads as this.
        case any = "ANY"
        /// Every one; true for an empty list.
        case all = "ALL"
        /// None; true for an empty list.
        case none = "NONE"
    }

    /// What a comparison asks of its two sides.
    ///
    /// The raw value is the canonical spelling.
    public enum Comparator: String, Sendable, Hashable, CaseIterable {
        /// Equal.
        case equal = "=="
        /// Not equal.
        case notEqual = "!="
        /// Less.
        case less = "<"
        /// Less or equal.
        case lessOrEqual = "<="
        /// Greater.
        case greater = ">"
        /// Greater or equal.
        case greaterOrEqual = ">="
        /// Between two bounds, both included.
        case between = "BETWEEN"
        /// Is an element, or a part of a text.
        case `in` = "IN"
        /// Has as an element, or as a part of the text.
        case contains = "CONTAINS"
        /// Begins with the text.
        case beginsWith = "BEGINSWITH"
        /// Ends with the text.
        case endsWith = "ENDSWITH"
        /// Is, as a whole, like a pattern of `*` and `?`.
        case like = "LIKE"
        /// Is, as a whole, matched by a regular expression.
        case matches = "MATCHES"
        /// Has one of the words, ignoring case, marks and stop words (CloudKit's token search).
        case tokenMatches = "TOKENMATCHES"
        /// Is the same uniform type identifier, ignoring case.
        case typeEquals = "UTI-EQUALS"
        /// Lies inside a shape (RQL's `GEOWITHIN`).
        case geoWithin = "GEOWITHIN"

        /// Whether it is one of the six that compare by order or equality.
        public var isRelational: Bool {
            switch self {
            case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual: true
            default: false
            }
        }
    }

    /// How texts are compared: NSPredicate's letters in brackets after an operator.
    public struct TextOptions: OptionSet, Sendable, Hashable {
        /// One bit for each letter.
        public let rawValue: UInt8

        /// Takes bits that came from a ``rawValue``.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// `c`: upper and lower case are one.
        public static let ignoringCase = TextOptions(rawValue: 1)
        /// `d`: a letter with and without marks is one.
        public static let ignoringDiacritics = TextOptions(rawValue: 2)
        /// `n`: both sides are normalised already; compared code unit by code unit, which
        /// overrides the other letters.
        public static let normalized = TextOptions(rawValue: 4)
        /// `l`: locale-aware; kept, and without effect, since the relay has no locale.
        public static let localeAware = TextOptions(rawValue: 8)

        /// The letters in the order c, d, n, l.
        public var letters: String {
            var letters = ""
            if contains(.ignoringCase) { letters.append("c") }
            if contains(.ignoringDiacritics) { letters.append("d") }
            if contains(.normalized) { letters.append("n") }
            if contains(.localeAware) { letters.append("l") }
            return letters
        }
    }

    /// Whose rules a comparison follows.
    ///
    /// The raw value stands in the canonical text after a colon in the option brackets:
    /// `name CONTAINS[c:realm] ""`. ``apple`` is not written.
    public enum RuleSet: String, Sendable, Hashable, CaseIterable {
        /// NSPredicate's, which are CloudKit's too.
        case apple
        /// Realm Query Language's: a list without quantifier means ANY, an empty or nil needle is
        /// contained in everything, booleans are not numbers, a count through nil is 0.
        case realm
        /// Minapp's: booleans are not numbers, a value of the wrong kind does not match.
        case minapp
        /// Firebase's: a total order over all kinds, in which nil comes first.
        case firebase
    }
}

/// A range of UTF-8 offsets in the text that a predicate was parsed from.
///
/// It takes no part in equality: predicates are equal whatever text they came from.
public struct SourceSpan: Sendable, Hashable {
    /// The offset of the first byte.
    public let offset: Int
    /// The number of bytes.
    public let length: Int

    /// Both are counted in bytes of UTF-8.
    public init(offset: Int, length: Int) {
        self.offset = offset
        self.length = length
    }

    /// The span of what came from no text.
    public static let none = SourceSpan(offset: 0, length: 0)

    /// Always true.
    public static func == (_: SourceSpan, _: SourceSpan) -> Bool { true }

    /// Adds nothing.
    public func hash(into _: inout Hasher) {}
}

extension RecordPredicate.Comparison {
    /// Whether it searches all texts of a record, by CloudKit's name for these.
    var searchesAllTokens: Bool {
        comparator == .tokenMatches && left == .field("allTokens")
    }
}

extension RecordPredicate.Node {
    /// What has to hold all together: an AND within an AND is one with it, as `(a AND b) AND c` is.
    var joinedByAnd: [Self] {
        guard case .and(let nodes) = self else { return [self] }
        return nodes.flatMap(\.joinedByAnd)
    }
}
