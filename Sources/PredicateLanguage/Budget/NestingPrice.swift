/// What loops in loops cost those who save them.
extension RecordPredicate.Comparison {
    /// What a comparison counts for in the accounts of costs whose steps may be a product; `nil` of
    /// one that reads the record a few times at most.
    ///
    /// Each loop in a loop makes what is inside it four times as dear: `ANY` in a SUBQUERY counts
    /// 544, a SUBQUERY in another 672, a third one in those 2,720. By default one condition may
    /// cost 500, unless it is found by a value that few records have.
    package var nestingPrice: Int? {
        var weight = EvaluationWeight()
        weight.add(self)
        return weight.hasProducts ? price(at: 1) : nil
    }

    private static let base = 8
    /// Deeper loops are no dearer: what they cost is beyond every limit already.
    private static let deepest = 8

    func price(at depth: Int) -> Int {
        let isLoop = quantifier != nil || rightQuantifier != nil || comparator == .matches
        let own = Self.base << (2 * min(isLoop ? depth + 1 : depth, Self.deepest))
        return own + left.price(at: depth) + right.price(at: depth)
    }
}

extension RecordPredicate.Node {
    func price(at depth: Int) -> Int {
        switch self {
        case .constant: 0
        case .not(let inner): inner.price(at: depth)
        case .and(let nodes), .or(let nodes): nodes.reduce(0) { $0 + $1.price(at: depth) }
        case .comparison(let comparison): comparison.price(at: depth)
        }
    }
}

extension RecordPredicate.Expression {
    func price(at depth: Int) -> Int {
        switch self {
        case .constant, .variable, .anyKey: return 0
        case .path(let path): return path.price(at: depth)
        case .member(let base, let path): return base.price(at: depth) + path.price(at: depth)
        case .list(let parts), .call(_, let parts):
            return parts.reduce(0) { $0 + $1.price(at: depth) }
        case .arithmetic(_, let left, let right):
            return left.price(at: depth) + right.price(at: depth)
        case .negative(let inner), .complement(let inner), .cast(let inner, _),
            .assignment(_, let inner):
            return inner.price(at: depth)
        case .conditional(let test, let first, let second):
            return test.price(at: depth) + first.price(at: depth) + second.price(at: depth)
        case .subquery(let list, _, let condition):
            return list.price(at: depth) + condition.price(at: depth + 1)
        }
    }
}

extension RecordPredicate.RecordPath {
    func price(at depth: Int) -> Int {
        components.reduce(0) { sum, component in
            guard case .element(let index) = component else { return sum }
            return sum + index.price(at: depth + 1)
        }
    }
}
