import RelayModel

/// A ``RecordPredicate/Node`` with its constants prepared.
indirect enum PreparedNode: Sendable {
    case constant(Bool)
    case comparison(PreparedComparison)
    case and([PreparedNode])
    case or([PreparedNode])
    case not(PreparedNode)

    init(
        _ node: RecordPredicate.Node, _ preparation: Preparation
    ) throws(PredicateError) {
        switch node {
        case .constant(let isTrue): self = .constant(isTrue)
        case .comparison(let comparison):
            self = .comparison(try PreparedComparison(comparison, preparation))
        case .and(let nodes): self = .and(try Self.prepare(nodes, preparation))
        case .or(let nodes): self = .or(try Self.prepare(nodes, preparation))
        case .not(let inner): self = .not(try PreparedNode(inner, preparation))
        }
    }

    private static func prepare(
        _ nodes: [RecordPredicate.Node], _ preparation: Preparation
    ) throws(PredicateError) -> [PreparedNode] {
        var prepared: [PreparedNode] = []
        prepared.reserveCapacity(nodes.count)
        for node in nodes { prepared.append(try PreparedNode(node, preparation)) }
        return prepared
    }
}

/// A comparison with everything that can be computed from its constants without a record.
final class PreparedComparison: Sendable {
    /// The comparison as it was written.
    let source: RecordPredicate.Comparison
    let left: PreparedExpression
    let right: PreparedExpression
    /// The constant pattern of LIKE or MATCHES.
    let pattern: TextPattern?
    /// The engine that compiles a pattern that comes from the record.
    let engine: (any RegularExpressionEngine)?
    /// The constant text to search for.
    let needle: TextNeedle?
    /// The constant list of IN, sorted by kind.
    let members: ConstantMembers?
    /// The words of a token search.
    let words: Set<String>?
    /// The comparison as its dialect evaluates it, if that dialect has rules of its own.
    let foreign: (any ForeignComparison)?

    init(
        _ source: RecordPredicate.Comparison, _ preparation: Preparation
    ) throws(PredicateError) {
        self.source = source
        left = try PreparedExpression(
            source.searchesAllTokens ? .record : source.left, preparation)
        right = try PreparedExpression(source.right, preparation)
        var pattern: TextPattern?
        var needle: TextNeedle?
        var members: ConstantMembers?
        var words: Set<String>?
        // Other rules than Apple's treat texts in their own way.
        let constant = source.rules == .apple ? source.right.literal : nil
        switch (source.comparator, constant) {
        case (.like, .string(let text)?), (.matches, .string(let text)?):
            pattern = try Self.compile(text, of: source, by: preparation.engine)
        case (.beginsWith, .string(let text)?), (.endsWith, .string(let text)?),
            (.contains, .string(let text)?):
            needle = TextNeedle(text, source.options)
        case (.tokenMatches, .string(let text)?): words = Set(TokenSearch.words(of: text))
        default: break
        }
        if source.comparator == .in, let values = source.right.literal?.elements {
            members = ConstantMembers(values, source.options, source.rules)
        }
        foreign = preparation.foreign(source)
        if source.comparator == .contains, source.left == .record,
            case .string(let text)? = source.right.literal
        {
            words = Set(TokenSearch.words(of: text))
        }
        if source.comparator == .in, case .string(let text)? = source.left.literal {
            needle = TextNeedle(text, source.options)
        }
        self.pattern = pattern
        engine =
            source.comparator == .matches && pattern == nil
            ? preparation.engine.ofRecords : nil
        self.needle = needle
        self.members = members
        self.words = words
    }

    private static func compile(
        _ pattern: String, of source: RecordPredicate.Comparison,
        by engine: any RegularExpressionEngine
    ) throws(PredicateError) -> TextPattern {
        do throws(RegularExpressionRefusal) {
            return try TextPattern(pattern, of: source, by: engine)
        } catch {
            var refusal = PredicateError(
                .check, "the pattern is refused: \(error.reason)", at: source.rightSpan,
                found: "\"\(pattern.prefix(60))\"",
                expected: source.comparator == .like
                    ? "a pattern with * and ?" : "a regular expression that runs in linear time")
            refusal.passes = error.passes
            throw refusal
        }
    }
}
