import RelayModel

/// A ``RecordPredicate/Node`` with its constants prepared.
indirect enum PreparedNode: Sendable {
    case constant(Bool)
    case comparison(PreparedComparison)
    case and([PreparedNode])
    case or([PreparedNode])
    case not(PreparedNode)

    init(_ node: RecordPredicate.Node) throws(PredicateError) {
        switch node {
        case .constant(let isTrue): self = .constant(isTrue)
        case .comparison(let comparison): self = .comparison(try PreparedComparison(comparison))
        case .and(let nodes): self = .and(try Self.prepare(nodes))
        case .or(let nodes): self = .or(try Self.prepare(nodes))
        case .not(let inner): self = .not(try PreparedNode(inner))
        }
    }

    private static func prepare(
        _ nodes: [RecordPredicate.Node]
    ) throws(PredicateError) -> [PreparedNode] {
        var prepared: [PreparedNode] = []
        prepared.reserveCapacity(nodes.count)
        for node in nodes { prepared.append(try PreparedNode(node)) }
        return prepared
    }
}

/// A comparison with what can be made of its constants before any record is seen.
final class PreparedComparison: Sendable {
    /// The comparison as it was written.
    let source: RecordPredicate.Comparison
    let left: PreparedExpression
    let right: PreparedExpression
    /// The constant pattern of LIKE or MATCHES.
    let expression: RegularExpression?
    /// The constant text that is looked for.
    let needle: TextNeedle?
    /// The constant list of IN, hashed.
    let members: ConstantMembers?
    /// The words of a token search.
    let words: Set<String>?

    init(_ source: RecordPredicate.Comparison) throws(PredicateError) {
        self.source = source
        // CloudKit's name for all searchable texts of a record.
        let isAllTokens =
            source.comparator == .tokenMatches && source.left == .field("allTokens")
        left = try PreparedExpression(isAllTokens ? .record : source.left)
        right = try PreparedExpression(source.right)
        var expression: RegularExpression?
        var needle: TextNeedle?
        var members: ConstantMembers?
        var words: Set<String>?
        // Other rules than Apple's have their own ways with texts.
        let constant = source.rules == .apple ? source.right.literal : nil
        switch (source.comparator, constant) {
        case (.like, .string(let pattern)?), (.matches, .string(let pattern)?):
            expression = try Self.compile(pattern, of: source)
        case (.beginsWith, .string(let text)?), (.endsWith, .string(let text)?),
            (.contains, .string(let text)?):
            needle = TextNeedle(text, source.options)
        case (.tokenMatches, .string(let text)?): words = Set(TokenSearch.words(of: text))
        case (.in, .list(let values)?): members = ConstantMembers(values, source.options)
        case (.in, .set(let values)?): members = ConstantMembers(Array(values), source.options)
        default: break
        }
        if source.comparator == .contains, source.left == .record,
            case .string(let text)? = source.right.literal
        {
            words = Set(TokenSearch.words(of: text))
        }
        if source.comparator == .in, case .string(let text)? = source.left.literal {
            needle = TextNeedle(text, source.options)
        }
        self.expression = expression
        self.needle = needle
        self.members = members
        self.words = words
    }

    private static func compile(
        _ pattern: String, of source: RecordPredicate.Comparison
    ) throws(PredicateError) -> RegularExpression {
        do throws(RegularExpressionRefusal) {
            return source.comparator == .like
                ? try RegularExpression(like: pattern, source.options)
                : try RegularExpression(icu: pattern, source.options)
        } catch {
            throw PredicateError(
                .check, "the pattern is refused: \(error.reason)", at: source.rightSpan,
                found: "\"\(pattern.prefix(60))\"",
                expected: source.comparator == .like
                    ? "a pattern of * and ?" : "a regular expression of linear time")
        }
    }
}

/// The elements of a constant list, hashed so that IN takes the same time however long it is.
struct ConstantMembers: Sendable {
    private let keys: Set<FieldValue>
    private let options: RecordPredicate.TextOptions

    /// Hashes `values`, or returns `nil` where equality cannot be told by a hash (collections), or
    /// where the list is so short that it does not pay.
    init?(_ values: [FieldValue], _ options: RecordPredicate.TextOptions) {
        guard values.count > 4, !options.contains(.normalized) else { return nil }
        var keys: Set<FieldValue> = []
        for value in values {
            guard let key = Self.key(of: value, options) else { return nil }
            keys.insert(key)
        }
        self.keys = keys
        self.options = options
    }

    /// Whether some element equals `value`, which must not be a collection.
    func contains(_ value: FieldValue) -> Bool? {
        Self.key(of: value, options).map { keys.contains($0) }
    }

    /// A value that is equal for exactly those values that the comparison holds to be equal.
    private static func key(
        of value: FieldValue, _ options: RecordPredicate.TextOptions
    ) -> FieldValue? {
        switch value {
        case .bool(let flag): .integer(flag ? 1 : 0)
        case .double(let number): Int64(exactly: number).map(FieldValue.integer) ?? value
        case .string(let text): options.folds ? .string(TextFolding.fold(text, options)) : value
        case .list, .set, .map: nil
        default: value
        }
    }
}
