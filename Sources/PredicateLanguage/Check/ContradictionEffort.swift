import RelayModel

/// The effort that may go into finding a contradiction in one condition, counted in comparisons.
///
/// A finding is certain, however little effort is spent. The work for nested parts is a product:
/// each level is examined with everything inside it, and with each candidate value of a field. The
/// limit is necessary because clients choose the size of a condition.
final class ContradictionEffort {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    /// The maximum effort, about 20 ms.
    static let most = 200_000
    /// The number of evaluation steps that take as long as one comparison.
    static let stepsPerComparison = 50

    /// The number of comparisons that may still be evaluated.
    private(set) var left: Int

    init(_ most: Int = ContradictionEffort.most) {
        left = most
    }

    /// Spends the effort of `comparisons`, and returns whether there was enough left.
    ///
    /// If there was not, all the remaining effort is used up.
    func allows(_ comparisons: Int) -> Bool {
        guard comparisons <= left else {
            left = 0
            return false
        }
        left -= comparisons
        return true
    }

    /// Returns the size of `nodes` in comparisons, and spends that effort.
    ///
    /// Returns `nil` if not enough is left.
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

    /// Returns the size of a side: its parts, the elements of its lists, and an addition for longer
    /// texts.
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
