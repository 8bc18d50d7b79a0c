import RelayModel

// What conditions take in memory that the evaluator judges.
extension RecordPredicate.Node {
    /// Bytes of memory that it takes with its ``PreparedPredicate``, rather too many than too few.
    ///
    /// It is reckoned from the condition alone: of a short text it may be a hundred times as much.
    package var preparedRoom: Int {
        let isFlat = !assigns && !EvaluationWeight(self).isMetered
        let program = HeapRoom.object(MemoryLayout<ProgramParts>.size + 8)
        let flat = isFlat ? comparisonCount * Self.step + Self.parts : 0
        // What may be left out here, and what chunks lose to each other.
        return (room + program + flat) * 5 / 4
    }

    /// A comparison in a flat program: the arrays of that have grown.
    private static let step =
        2
        * (MemoryLayout<ProgramStep>.stride + MemoryLayout<FieldPath>.stride
            + MemoryLayout<PreparedComparison>.stride + MemoryLayout<TextPattern>.stride)
    /// What these arrays take besides.
    private static let parts = 4 * 48

    private var comparisonCount: Int {
        switch self {
        case .constant: 0
        case .comparison: 1
        case .not(let inner): inner.comparisonCount
        case .and(let nodes), .or(let nodes): nodes.reduce(0) { $0 + $1.comparisonCount }
        }
    }

    /// Both as they were read and as they are made ready.
    var room: Int {
        switch self {
        case .constant: return 2 * HeapRoom.object(1)
        case .comparison(let comparison):
            return HeapRoom.object(MemoryLayout<RecordPredicate.Comparison>.size)
                + HeapRoom.object(8) + comparison.room
        case .not(let inner): return 2 * HeapRoom.object(8) + inner.room
        case .and(let nodes), .or(let nodes):
            let own =
                2 * HeapRoom.object(8) + HeapRoom.grownArray(nodes.count, 8)
                + HeapRoom.array(nodes.count, 8)
            return nodes.reduce(own) { $0 + $1.room }
        }
    }
}

extension RecordPredicate.Comparison {
    /// What a prepared one holds in its place.
    private static let prepared =
        HeapRoom.object(
            MemoryLayout<RecordPredicate.Comparison>.stride + MemoryLayout<TextPattern?>.stride
                + MemoryLayout<(any RegularExpressionEngine)?>.stride
                + MemoryLayout<(any ForeignComparison)?>.stride + 5 * 8)

    var room: Int {
        var room = Self.prepared + left.room + right.room
        if rules != .apple {
            room += HeapRoom.object(
                MemoryLayout<RecordPredicate.Comparison>.stride
                    + MemoryLayout<RealmEvaluator.Test>.stride)
        }
        for constant in [left.literal, right.literal] {
            switch constant {
            case .string(let text)?: room += textRoom(text)
            case .bytes(let bytes)? where rules == .realm:
                room += HeapRoom.grownArray(bytes.count, 4)
            case .list(let values)? where comparator == .in: room += membersRoom(values)
            case .set(let values)? where comparator == .in:
                room += membersRoom(Array(values))
            default: continue
            }
        }
        return room
    }

    /// What is made of a text that others are compared with.
    private func textRoom(_ text: String) -> Int {
        var room = 0
        let bytes = foldedBytes(text)
        if rules == .realm {
            room += HeapRoom.grownArray(text.unicodeScalars.count, 4)
            if comparator == .like {
                room += LikePattern(RealmText(.string(text), options).units).room
            }
        }
        switch comparator {
        case .like where rules == .apple:
            let folded = TextFolding.fold(text, options)
            room += LikePattern(folded.unicodeScalars.map(\.value), escaping: .signs).room
            // Without signs it is a search, in the program.
            if options.isEmpty { room += Self.needle(bytes) + HeapRoom.text(bytes) }
        case .matches: room += HeapRoom.object(128) + 2 * HeapRoom.text(bytes)
        case .beginsWith, .endsWith, .contains, .in: room += 2 * Self.needle(bytes)
        default:
            room += HeapRoom.object(48) + 2 * HeapRoom.text(bytes)
        }
        if comparator == .tokenMatches || comparator == .contains && left == .record {
            // Of words of one letter there are only so many.
            let most = min(bytes / 2 + 1, bytes / 3 + 36)
            room += HeapRoom.table(most, MemoryLayout<String>.stride) + 2 * HeapRoom.text(bytes)
        }
        return room
    }

    /// A text that is looked for in others: its bytes, and for each the length of a border.
    private static func needle(_ bytes: Int) -> Int {
        HeapRoom.object(40) + HeapRoom.array(bytes, 1)
            + (bytes > 16 ? HeapRoom.array(bytes, MemoryLayout<Int>.stride) : 0)
    }

    private func foldedBytes(_ text: String) -> Int {
        text.utf8.allSatisfy { $0 < 0x80 }
            ? text.utf8.count : max(text.utf8.count, TextFolding.fold(text, options).utf8.count)
    }

    /// What ``ConstantMembers`` sorts them into.
    private func membersRoom(_ values: [FieldValue]) -> Int {
        var counts = (numbers: 0, texts: 0, others: 0)
        var room = HeapRoom.object(80)
        for value in values {
            switch value {
            case .null: continue
            case .integer, .bool: counts.numbers += 1
            case .double(let number) where Int64(exactly: number) != nil: counts.numbers += 1
            case .string(let text):
                counts.texts += 1
                if options.folds { room += HeapRoom.text(foldedBytes(text)) }
            default: counts.others += 1
            }
        }
        return room + HeapRoom.array(counts.numbers, 8)
            + HeapRoom.table(counts.texts, MemoryLayout<String>.stride)
            + HeapRoom.array(min(counts.texts, 8), MemoryLayout<String>.stride)
            + 2 * HeapRoom.table(counts.others, MemoryLayout<FieldValue>.stride)
    }
}

extension RecordPredicate.Expression {
    /// Both as it was read and as it is made ready; texts are shared.
    var room: Int {
        switch self {
        case .anyKey: return 0
        case .constant(let value):
            // Numbers in a formula stand there once more.
            return 2 * HeapRoom.object(MemoryLayout<FieldValue>.size) + 32 + value.heapRoom
        case .path(let path):
            return HeapRoom.object(MemoryLayout<RecordPredicate.RecordPath>.size)
                + HeapRoom.object(16) + 32 + path.room
        case .variable(let name): return 2 * HeapRoom.object(16) + HeapRoom.text(name)
        case .member(let base, let path):
            return 2 * HeapRoom.object(8 + MemoryLayout<RecordPredicate.RecordPath>.size)
                + base.room + path.room
        case .list(let parts), .call(_, let parts):
            return parts.reduce(2 * HeapRoom.object(16) + 2 * HeapRoom.grownArray(parts.count, 8)) {
                $0 + $1.room
            }
        case .arithmetic(_, let left, let right):
            return 2 * HeapRoom.object(24) + 64 + left.room + right.room
        case .negative(let inner), .complement(let inner), .cast(let inner, _):
            return 2 * HeapRoom.object(16) + 32 + inner.room
        case .assignment(let name, let inner):
            return 2 * HeapRoom.object(24) + HeapRoom.text(name) + inner.room
        case .conditional(let test, let first, let second):
            return 2 * HeapRoom.object(24) + test.room + first.room + second.room
        case .subquery(let list, let variable, let condition):
            return 2 * HeapRoom.object(32) + HeapRoom.text(variable) + list.room + condition.room
        }
    }
}

extension RecordPredicate.RecordPath {
    /// The steps, as they were read and as they are made ready.
    var room: Int {
        let stride = MemoryLayout<Component>.stride
        let own =
            HeapRoom.grownArray(components.count, stride)
            + HeapRoom.grownArray(components.count, MemoryLayout<PreparedExpression.Step>.stride)
            // Of plain names a program has an array of its own.
            + HeapRoom.array(max(components.count - 1, 0), MemoryLayout<String>.stride)
        return components.reduce(own) { sum, component in
            switch component {
            case .member(let name), .variableMember(let name): sum + HeapRoom.text(name)
            case .element(let index): sum + index.room
            default: sum
            }
        }
    }
}
