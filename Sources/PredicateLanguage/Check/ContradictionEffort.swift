import RelayModel

/// How much is done to find a contradiction in one condition, in comparisons that are judged.
///
/// What is found is certain, however little is looked for. Where parts stand deep in each other,
/// each depth is looked at with all that is inside it, and with each value that a field may have:
/// that is a product, and whoever saves a condition may make it as large as they like.
final class ContradictionEffort {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    /// About a fiftieth of a second.
    static let most = 200_000
    /// The steps of an evaluation that take as long as a comparison.
    static let stepsPerComparison = 50

    /// Comparisons that may be judged still.
    private(set) var left: Int

    init(_ most: Int = ContradictionEffort.most) {
        left = most
    }

    /// Whether there is enough left for what takes as long as so many comparisons; then it is
    /// spent, and else all is.
    func allows(_ comparisons: Int) -> Bool {
        guard comparisons <= left else {
            left = 0
            return false
        }
        left -= comparisons
        return true
    }

    /// As how many comparisons parts count, which going through them takes; `nil` if there is not
    /// enough left for that.
    func size(of nodes: [Node]) -> Int? {
        let before = left
        for node in nodes { spend(on: node) }
        return left > 0 ? before - left : nil
    }

    private func spend(on node: Node) {
        if left <= 0 { return }
        switch node {
        case .constant: left -= 1
        case .comparison(let comparison):
            left -= 1 + Self.size(of: comparison.left) + Self.size(of: comparison.right)
        case .not(let inner): spend(on: inner)
        case .and(let nodes), .or(let nodes): for node in nodes { spend(on: node) }
        }
    }

    /// What a side adds: the values and the longer texts that stand in it.
    private static func size(of side: Expression) -> Int {
        var size = 0
        _ = side.contains { part in
            size += 1
            if case .constant(let value) = part {
                size += value.byteCount / 16
                for element in value.elements ?? [] { size += 1 + element.byteCount / 16 }
            }
            return false
        }
        return size
    }
}
