import ChangeSources
package import RelayModel

/// Creates the images of rows of one table.
package struct RowBuilder {
    private let shape: TableShape
    /// How many values were left out, because their row is too large or they have endless combining
    /// marks.
    package private(set) var leftOut: UInt64 = 0

    package init(_ shape: TableShape) {
        self.shape = shape
    }

    /// Returns the image of a row before a change: the whole row, or its identity.
    mutating func former(_ row: FormerRow?) throws(MalformedMessage) -> RecordImage? {
        switch row {
        case nil: return nil
        case .whole(let values)?: return try self.row(values)
        case .key(let values)?:
            var image = try self.row(values)
            let identity = shape.identity
            // A partition may have logged the columns of another index than the partitioned
            // table's.
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

    /// Returns the image of a row.
    ///
    /// A value that did not change and was not read is taken from `unchanged`, if that is a whole
    /// row. Otherwise it is left out, and the image is partial.
    package mutating func row(
        _ values: [ColumnValue], unchanged: FormerRow? = nil
    ) throws(MalformedMessage) -> RecordImage {
        let columns = shape.relation.columns
        guard values.count == columns.count else {
            throw MalformedMessage("has \(values.count) values for \(columns.count) columns")
        }
        // Values taken from the former row count towards the size like received ones.
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

    /// Returns the values, with unchanged ones taken from the former row if that is whole.
    private static func completed(
        _ values: [ColumnValue], by former: FormerRow?
    ) -> [ColumnValue] {
        guard case .whole(let before)? = former, values.contains(.unchanged) else { return values }
        return values.indices.map { index in
            values[index] == .unchanged && before.indices.contains(index)
                ? before[index] : values[index]
        }
    }

    /// Returns the value that `text` represents.
    ///
    /// If it is nested too deeply, the text itself is returned: a request may nest 128 levels, and
    /// some of them are its own.
    private static func value(of text: ArraySlice<UInt8>, _ kind: PostgresKind) -> FieldValue {
        let value = kind.value(of: text)
        guard value.notationDepth > Limits.maximumJSONDepth - 8 else { return value }
        return PostgresKind.text.value(of: text)
    }

    /// Returns whether comparing a text could take very long; a request with such a text would be
    /// refused.
    private static func hasEndlessMarks(_ text: ArraySlice<UInt8>) -> Bool {
        text.count > Limits.maximumMarksInARow && text.contains { $0 >= 0xCC }
            && String(decoding: text, as: UTF8.self).hasEndlessMarks
    }

    /// Returns the maximum length of a value with which the whole row fits a record; usually
    /// unlimited.
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
