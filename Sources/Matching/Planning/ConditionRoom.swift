package import PredicateLanguage
import RelayModel

/// An estimate of the memory that a condition takes once it is filed: its rows and keys, its tree
/// for the evaluator, and the names of new paths.
///
/// The estimate is made from the condition alone, and is rather too high than too low. So a client
/// can be told before the condition is filed, and the result does not depend on other conditions.
/// Memory that equal conditions share is counted for each of them. One byte of a condition's text
/// may take well over a hundred bytes.
package struct ConditionRoom {
    /// The memory of any condition, in bytes.
    private static let least = 128
    /// The number of paths that most conditions have in common with others.
    private static let commonPaths = 4

    /// A path as it may have to be decoded.
    private struct Path: Hashable {
        let field: String
        let inner: [String]
        let steps: [RealmStep]
        let folding: TextOptions
        let view: ValueView?
        let hasFilter: Bool
    }

    private var rows = 0
    private var references = 0
    private var names = 0
    private var paths: Set<Path> = []
    /// Whether the evaluator judges the whole condition.
    private var isWhole = false
    /// Whether some keys may prove more than others, so that there are two programs.
    private var isMixed = false

    /// Returns the memory of a condition in bytes; `nil` is a condition that uses no fields.
    package static func bytes(of predicate: RecordPredicate?) -> Int {
        guard let predicate else { return least }
        let root = predicate.root
        if let few = plainBytes(of: root) { return least + few }
        var room = ConditionRoom()
        room.isWhole = EvaluationWeight(root).isMetered
        let keys = min(room.add(root, isNegated: false), mostKeys)
        // Blocks are up to a quarter larger than their contents.
        let programs = (room.rows + 64) * (room.isMixed ? 2 : 1) * 5 / 4
        let evaluated = room.isWhole ? ReferenceRow.room(of: root) : room.references
        return least + keys + programs + evaluated + room.names
    }

    /// The memory of a comparison that only the evaluator can judge because the conditions of its
    /// record type use too many paths already, in bytes.
    package static let unplaced = 2048

    // MARK: Plain conditions

    /// Returns the memory of a few plain comparisons, which most conditions are; `nil` for any
    /// other condition.
    private static func plainBytes(of root: Node) -> Int? {
        switch root {
        case .comparison(let comparison): return isPlain(comparison) ? plain : nil
        case .and(let nodes) where nodes.count <= commonPaths:
            for node in nodes {
                guard case .comparison(let comparison) = node, isPlain(comparison) else {
                    return nil
                }
            }
            return nodes.count * plain
        default: return nil
        }
    }

    /// The memory of a plain comparison: two rows and two keys.
    private static let plain = 384

    private static func isPlain(_ comparison: Comparison) -> Bool {
        guard comparison.rules == .apple, comparison.quantifier == nil,
            comparison.rightQuantifier == nil, comparison.options.isEmpty,
            case .path(let path) = comparison.left, path.fieldName != nil,
            case .constant(let value) = comparison.right
        else { return false }
        switch comparison.comparator {
        case .equal, .notEqual: return value.isRowScalar && value.keySize <= 64
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            return value.isRowOrdered && value.keySize <= 64
        default: return false
        }
    }

    // MARK: Parts

    /// Adds a part of the condition.
    ///
    /// - Returns: The memory of its keys, if it is filed under them.
    private mutating func add(_ node: Node, isNegated: Bool) -> Int {
        switch node {
        case .constant:
            references += ReferenceRow.room(of: node)
            return 0
        case .not(let inner): return add(inner, isNegated: !isNegated)
        case .and(let nodes): return add(nodes, isConjunction: !isNegated, isNegated)
        case .or(let nodes): return add(nodes, isConjunction: isNegated, isNegated)
        case .comparison(let comparison): return add(comparison, node, isNegated: isNegated)
        }
    }

    private mutating func add(_ nodes: [Node], isConjunction: Bool, _ isNegated: Bool) -> Int {
        var keys = 0
        for node in nodes {
            let own = add(node, isNegated: isNegated)
            keys = isConjunction ? max(keys, own) : keys + own
        }
        return keys
    }

    private mutating func add(
        _ comparison: Comparison, _ node: Node, isNegated: Bool
    ) -> Int {
        guard let leaf = Leaf(comparison) else {
            references += ReferenceRow.room(of: node)
            if comparison.left.bindsVariables || comparison.right.bindsVariables { isWhole = true }
            return 0
        }
        name(leaf)
        switch leaf.test {
        case .reference: references += ReferenceRow.room(of: node)
        case .member:
            rows += Self.row + leaf.members.reduce(0) { $0 + 24 + $1.rowSize }
            let isLong = leaf.members.contains { $0.keySize > Int(KeyBytes.longest) }
            isMixed = isMixed || isLong || leaf.view != nil
        default:
            rows += Self.row + leaf.constant.rowSize
            if let upper = leaf.upper { rows += Self.row + upper.rowSize }
            isMixed = isMixed || leaf.test == .has || leaf.view != nil
        }
        return keys(of: leaf, isNegated: isNegated != leaf.isTurned)
    }

    /// A row of three words and a constant without its bytes.
    private static let row = 28

    /// Counts the path of a comparison, unless it is one of the first few.
    private mutating func name(_ leaf: Leaf) {
        let hasFilter =
            switch leaf.test {
            case .has, .ends, .like, .reference: true
            default: false
            }
        let path = Path(
            field: leaf.field, inner: leaf.inner, steps: leaf.steps, folding: leaf.folding,
            view: leaf.view, hasFilter: hasFilter)
        guard paths.insert(path).inserted, paths.count > Self.commonPaths else { return }
        let isDerived = leaf.view != nil || !leaf.folding.isEmpty
        names += (isDerived ? 2 : 1) * Self.path + (hasFilter ? 2112 : 0)
    }

    /// The memory of a path in both lists of the catalog, which may have spare capacity, with its
    /// name and its dimensions.
    private static let path = 3 * MemoryLayout<PathUse>.stride + 512

    // MARK: Keys

    /// The limit for keys; a condition that would need more is filed under its record type.
    private static let mostKeys = Planner.mostKeys * key(Int(KeyBytes.longest))

    /// Returns the memory of a key with this number of bytes: its block with a posting, its slot in
    /// the table, and its part of the filing record.
    private static func key(_ bytes: Int) -> Int { 96 + min(bytes, Int(KeyBytes.longest)) * 5 / 4 }

    private func keys(of leaf: Leaf, isNegated: Bool) -> Int {
        switch leaf.test {
        case .notEqual: return isNegated ? Self.key(leaf.constant.keySize) : 0
        case _ where isNegated: return 0
        case .member:
            guard leaf.members.count <= Planner.mostKeys else { return 0 }
            return leaf.members.reduce(Self.key(Int(KeyBytes.longest))) {
                $0 + Self.key($1.keySize)
            }
        case .like, .reference: return leaf.clue.map { Self.room(of: $0) } ?? 0
        // An interval may need two keys: one for its cell, and one for lists.
        default: return 2 * Self.key(leaf.constant.keySize)
        }
    }

    private static func room(of clue: KeyClue) -> Int {
        guard clue.keys <= Planner.mostKeys else { return 0 }
        switch clue {
        case .prefix(let text), .part(let text): return key(text.utf8.count)
        case .words(let texts), .links(let texts):
            return texts.reduce(0) { $0 + key($1.utf8.count) }
        case .elements(let values): return values.reduce(0) { $0 + key($1.keySize) }
        case .near: return PlaceCells.most * key(16)
        case .nearOne(let circles): return circles.count * PlaceCells.most * key(16)
        case .between: return 2 * key(16)
        }
    }
}

extension FieldValue {
    /// The number of bytes of a scalar besides its kind and its order.
    var rowSize: Int {
        switch self {
        case .null, .bool, .integer, .double, .timestamp: 0
        default: keySize + 4
        }
    }

    /// The approximate number of bytes of a scalar in a key.
    var keySize: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes), .objectID(let bytes): bytes.count
        case .reference(let reference):
            reference.recordID.recordName.rawValue.utf8.count
                + reference.recordID.zoneID.zoneName.utf8.count
                + (reference.recordID.zoneID.ownerRecordName?.rawValue.utf8.count ?? 0) + 8
        default: 16
        }
    }
}
