import PredicateLanguage
import RelayModel

// Conversion of the workload's conditions and changes.
extension HashProbeBound {
    static func filing(
        of node: RecordPredicate.Node, _ id: UInt32, _ lengths: inout Set<Int>
    ) -> ([UInt64], Posting) {
        var keys: [UInt64] = []
        var posting = Posting(word: id)
        let members: [RecordPredicate.Node] = if case .and(let all) = node { all } else { [node] }
        for member in members {
            guard case .comparison(let comparison) = member,
                case .path(let path) = comparison.left, let field = path.fieldName,
                let value = comparison.right.literal
            else { continue }
            switch (field, comparison.comparator) {
            case ("artist", .in):
                if case .list(let values) = value { keys = values.map { key(field, $0) } }
            case ("artist", .equal), ("owner", .equal), ("genre", .equal), ("tags", .contains):
                keys = [key(field, value)]
                if field == "genre" { posting.test = 4 }
            case ("title", _):
                keys = [key(field, value)]
                if case .string(let text) = value { lengths.insert(text.utf8.count) }
            case ("price", .greaterOrEqual), ("price", .greater):
                posting.low = cents(value)
                posting.test = max(posting.test, 1)
            case ("price", _):
                posting.high = cents(value)
                posting.test = max(posting.test, 1)
            case ("score", _): (posting.low, posting.test) = (number(value), 2)
            case ("status", _): (posting.low, posting.test) = (status(value), 3)
            default: continue
            }
        }
        return (keys, posting)
    }

    static func fields(of node: RecordPredicate.Node) -> [String] {
        switch node {
        case .and(let nodes), .or(let nodes): nodes.flatMap(fields)
        case .comparison(let comparison):
            if case .path(let path) = comparison.left {
                path.fieldName.map { [$0] } ?? []
            } else {
                []
            }
        default: []
        }
    }

    static func key(_ field: String, _ value: FieldValue) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        if case .string(let text) = value {
            for byte in field.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
            for byte in text.utf8 { hash = SplitMix.mix(hash ^ UInt64(byte)) }
        }
        return hash | 1
    }

    static func cell(_ price: Int32) -> Int {
        Int(Int64(price) * Int64(cells) / 100_000_001)
    }

    static func cents(_ value: FieldValue?) -> Int32 {
        if case .double(let price)? = value { Int32((price * 100).rounded()) } else { 0 }
    }

    static func number(_ value: FieldValue?) -> Int32 {
        if case .integer(let number)? = value { Int32(number) } else { 0 }
    }

    static func status(_ value: FieldValue?) -> Int32 {
        guard case .string(let text)? = value else { return -1 }
        return Int32(text.dropFirst()) ?? -1
    }
}

extension HashProbeBound {
    /// Loads a change's keys into the cache; the sum keeps the compiler from removing the reads.
    func touch(_ change: Change) -> UInt64 {
        var sum: UInt64 = 0
        for key in change.keys { sum &+= keys[Int(key)] }
        return sum
    }
}
