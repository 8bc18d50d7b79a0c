/// PostgreSQL's text of a whole row, such as `(1,"a ""b""",)`: the fields in the table's order.
package struct RecordText: Sendable, Hashable {
    /// The fields; an empty field without quotation marks is NULL.
    package let values: [ColumnValue]

    /// Parses a row's text; `nil` if it is not well formed.
    ///
    /// - Complexity: O(*n*) in the length of the text.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "("), bytes.last == UInt8(ascii: ")")
        else { return nil }
        var values: [ColumnValue] = []
        var field: [UInt8] = []
        var isKnown = false
        var isQuoted = false
        var index = 1
        while index < bytes.count - 1 {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\\"):
                index += 1
                guard index < bytes.count - 1 else { return nil }
                field.append(bytes[index])
                isKnown = true
            case UInt8(ascii: "\""):
                if isQuoted, bytes[index + 1] == byte {
                    field.append(byte)
                    index += 1
                } else {
                    isQuoted.toggle()
                }
                isKnown = true
            case UInt8(ascii: ",") where !isQuoted:
                values.append(isKnown ? .text(field[...]) : .null)
                (field, isKnown) = ([], false)
            default:
                field.append(byte)
                isKnown = true
            }
            index += 1
        }
        guard !isQuoted else { return nil }
        values.append(isKnown ? .text(field[...]) : .null)
        self.values = values
    }
}
