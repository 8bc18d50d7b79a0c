/// The price of nested loops, which is charged when a condition is saved.
extension RecordPredicate.Comparison {
    /// The price of a comparison whose number of steps may be a product, or `nil` for a comparison
    /// that reads the record at most a few times.
    ///
    /// Each nested loop makes what is inside it four times as expensive: `ANY` in a SUBQUERY costs
    /// 544, a SUBQUERY in another 672, and a third one inside those 2,720. By default one condition
    /// may cost 500, unless the index finds it by a value that few records have.
    package var nestingPrice: Int? {
        var weight = EvaluationWeight()
        weight.add(self)
        return weight.hasProducts ? price(at: 1) : nil
    }

    private static let base = 8
    /// Loops nested deeper cost no more, because this price is already beyond every limit.
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
