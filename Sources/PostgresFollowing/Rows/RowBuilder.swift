import ChangeSources
package import RelayModel

/// Makes the images of rows of one table.
package struct RowBuilder {
    private let shape: TableShape
    /// How many values were left out, because their row is too large or their marks have no end.
    package private(set) var leftOut: UInt64 = 0

    package init(_ shape: TableShape) {
        self.shape = shape
    }

    /// The row before a change: the whole row, or its identity.
    mutating func former(_ row: FormerRow?) throws(MalformedMessage) -> RecordImage? {
        switch row {
        case nil: return nil
        case .whole(let values)?: return try self.row(values)
        case .key(let values)?:
            var image = try self.row(values)
            let identity = shape.identity
            // A partition may have logged the columns of another index than the whole table's.
            let isOfOther =
                shape.isPartitioned
                && identity.contains { image.fields[$0]?.isNull ?? false }
            image.fields = image.fields.filter {
                isOfOther ? !$0.value.isNull : identity.contains($0.key)
            }
            image.completeness = .partial
            return image
        }
    }

    /// A row; what did not change and was not read is taken from the row before it, if that is
    /// whole, and otherwise unknown.
    package mutating func row(
        _ values: [ColumnValue], unchanged: FormerRow? = nil
    ) throws(MalformedMessage) -> RecordImage {
        let columns = shape.relation.columns
        guard values.count == columns.count else {
            throw MalformedMessage("has \(values.count) values for \(columns.count) columns")
        }
        // What is taken from the row before counts as what came.
        let completed = Self.completed(values, by: unchanged)
        var image = RecordImage([:])
        image.fields.reserveCapacity(values.count)
        let longest = Self.longestKept(of: completed)
        for index in completed.indices {
            switch completed[index] {
            case .null: image.fields[columns[index].name] = .null
            case .unchanged: image.completeness = .partial
            case .text(let text) where text.count > longest || Self.hasEndlessMarks(text):
                image.completeness = .partial
                leftOut += 1
            case .text(let text):
                image.fields[columns[index].name] = Self.value(of: text, shape.kinds[index])
            }
        }
        return image
    }

    /// The values with those of the row before, if that is whole, where they did not change.
    private static func completed(
        _ values: [ColumnValue], by former: FormerRow?
    ) -> [ColumnValue] {
        guard case .whole(let before)? = former, values.contains(.unchanged) else { return values }
        return values.indices.map { index in
            values[index] == .unchanged && before.indices.contains(index)
                ? before[index] : values[index]
        }
    }

    /// The value that `text` writes, or the text where nobody could take it in: what is posted
    /// nests 128 levels deep, a few of which are the request's own.
    private static func value(of text: ArraySlice<UInt8>, _ kind: PostgresKind) -> FieldValue {
        let value = kind.value(of: text)
        guard value.notationDepth > Limits.maximumJSONDepth - 8 else { return value }
        return PostgresKind.text.value(of: text)
    }

    /// Whether a text could hold up whoever compares it: one who posts such a body is refused.
    private static func hasEndlessMarks(_ text: ArraySlice<UInt8>) -> Bool {
        text.count > Limits.maximumMarksInARow && text.contains { $0 >= 0xCC }
            && String(decoding: text, as: UTF8.self).hasEndlessMarks
    }

    /// How long a value may be, so that all of its row fit a record: usually any.
    private static func longestKept(of values: [ColumnValue]) -> Int {
        var sum = 0
        for case .text(let text) in values { sum += text.count }
        guard sum > Limits.maximumRecordBytes else { return .max }
        let lengths = values.map { value in
            if case .text(let text) = value { text.count } else { 0 }
        }
        for length in lengths.sorted(by: >) {
            sum -= length
            if sum <= Limits.maximumRecordBytes { return length - 1 }
        }
        return 0
    }
}
