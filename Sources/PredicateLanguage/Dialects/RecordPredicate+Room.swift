import RelayModel

// Estimates of the memory of conditions that the evaluator judges.
extension RecordPredicate.Node {
    /// The bytes of memory that the condition takes together with its ``PreparedPredicate``.
    ///
    /// The estimate errs on the high side.
    ///
    /// It follows from the condition alone. For a short text it may be a hundred times the text's
    /// length.
    package var preparedRoom: Int {
        let isFlat = !assigns && !EvaluationWeight(self).isMetered
        let program = HeapRoom.object(MemoryLayout<ProgramParts>.size + 8)
        let flat = isFlat ? comparisonCount * Self.step + Self.parts : 0
        // The factor covers what is not counted here, and memory that is lost between chunks.
        return (room + program + flat) * 5 / 4
    }

    /// The bytes for a comparison in a flat program, whose arrays have grown by doubling.
    private static let step =
        2
        * (MemoryLayout<ProgramStep>.stride + MemoryLayout<FieldPath>.stride
            + MemoryLayout<PreparedComparison>.stride + MemoryLayout<TextPattern>.stride)
    /// The bytes for the headers of these arrays.
    private static let parts = 4 * 48

    private var comparisonCount: Int {
        switch self {
        case .constant: 0
        case .comparison: 1
        case .not(let inner): inner.comparisonCount
        case .and(let nodes), .or(let nodes): nodes.reduce(0) { $0 + $1.comparisonCount }
        }
    }

    /// The bytes for the node as it was read, and for its prepared form.
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
    /// The bytes for the prepared form of a comparison.
    private static let prepared =
        HeapRoom.object(
            MemoryLayout<RecordPredicate.Comparison>.stride + MemoryLayout<TextPattern?>.stride
                + MemoryLayout<(any RegularExpressionEngine)?>.stride
                + MemoryLayout<(any ForeignComparison)?>.stride + 5 * 8)

    /// The bytes for the prepared comparison, its sides and what is computed from its constants.
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

    /// Returns the bytes for what is computed from a constant text.
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
            // A LIKE pattern without wildcards becomes a search in the program.
            if options.isEmpty { room += Self.needle(bytes) + HeapRoom.text(bytes) }
        case .matches: room += HeapRoom.object(128) + 2 * HeapRoom.text(bytes)
        case .beginsWith, .endsWith, .contains, .in: room += 2 * Self.needle(bytes)
        default:
            room += HeapRoom.object(48) + 2 * HeapRoom.text(bytes)
        }
        if comparator == .tokenMatches || comparator == .contains && left == .record {
            // There are only a few different words of one letter.
            let most = min(bytes / 2 + 1, bytes / 3 + 36)
            room += HeapRoom.table(most, MemoryLayout<String>.stride) + 2 * HeapRoom.text(bytes)
        }
        return room
    }

    /// Returns the bytes for a text to search for: its bytes, and for each of them the length of a
    /// border.
    private static func needle(_ bytes: Int) -> Int {
        HeapRoom.object(40) + HeapRoom.array(bytes, 1)
            + (bytes > 16 ? HeapRoom.array(bytes, MemoryLayout<Int>.stride) : 0)
    }

    private func foldedBytes(_ text: String) -> Int {
        text.utf8.allSatisfy { $0 < 0x80 }
            ? text.utf8.count : max(text.utf8.count, TextFolding.fold(text, options).utf8.count)
    }

    /// Returns the bytes of ``ConstantMembers`` for `values`.
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
    /// The bytes for the expression as it was read, and for its prepared form.
    ///
    /// Both share texts.
    var room: Int {
        switch self {
        case .anyKey: return 0
        case .constant(let value):
            // A formula holds its numbers once more.
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
    /// The bytes for the components of the path as they were read, and for their prepared form.
    var room: Int {
        let stride = MemoryLayout<Component>.stride
        let own =
            HeapRoom.grownArray(components.count, stride)
            + HeapRoom.grownArray(components.count, MemoryLayout<PreparedExpression.Step>.stride)
            // A program has an array of its own for a path of plain names.
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
