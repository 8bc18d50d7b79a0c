package import PredicateLanguage
import RelayModel

/// What a condition takes in memory once it is filed: rows, keys, what the evaluator needs of it,
/// and the names that it brings along.
///
/// It is reckoned from the condition alone, rather too high than too low, so that whoever saves it
/// can be told before it is filed, and the same whatever else is filed. What equal conditions share
/// counts for each. One byte of a condition's text may come to well over a hundred.
package struct ConditionRoom {
    /// What is kept of any condition.
    private static let least = 128
    /// Names of fields that most conditions have in common with others.
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
    /// Whether the evaluator judges all of it.
    private var isWhole = false
    /// Whether some keys may prove what others do not: then there are two programs.
    private var isMixed = false

    /// Bytes of a condition; `nil` asks nothing of fields.
    package static func bytes(of predicate: RecordPredicate?) -> Int {
        guard let predicate else { return least }
        let root = predicate.root
        if let few = plainBytes(of: root) { return least + few }
        var room = ConditionRoom()
        room.isWhole = EvaluationWeight(root).isMetered
        let keys = min(room.add(root, isNegated: false), mostKeys)
        // Blocks are up to a quarter larger than what they hold.
        let programs = (room.rows + 64) * (room.isMixed ? 2 : 1) * 5 / 4
        let evaluated = room.isWhole ? ReferenceRow.room(of: root) : room.references
        return least + keys + programs + evaluated + room.names
    }

    /// What a comparison takes that only the evaluator judges because its record type's conditions
    /// have too many names already.
    package static let unplaced = 2048

    // MARK: Plain conditions

    /// What a few plain comparisons take, of which most conditions are; `nil` of any other.
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

    /// Two rows, and two keys.
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
    /// - Returns: What its keys take, if it is filed under them.
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

    /// A row of three words, and a constant without its bytes.
    private static let row = 28

    /// Counts the path of a comparison, unless it is one of a few.
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

    /// A path in both lists of the catalog, which have grown, with its name and its dimensions.
    private static let path = 3 * MemoryLayout<PathUse>.stride + 512

    // MARK: Keys

    /// A condition that needs more is filed under its record type.
    private static let mostKeys = Planner.mostKeys * key(Int(KeyBytes.longest))

    /// A key of so many bytes: its block with a posting, its place in the table, and the record by
    /// which it is found again.
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
        // Of an interval there may be two: that of its cell, and one for lists.
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
    /// Bytes of a scalar behind its kind and its order.
    var rowSize: Int {
        switch self {
        case .null, .bool, .integer, .double, .timestamp: 0
        default: keySize + 4
        }
    }

    /// Bytes of a scalar in a key, about.
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
