extension String {
    /// As a name in SQL.
    package var quotedName: String { "\"\(replacing("\"", with: "\"\""))\"" }
    /// As a text in SQL.
    package var quotedText: String { "'\(replacing("'", with: "''"))'" }

    /// `schema.table` as names in SQL; the schema is `public` unless said.
    package var quotedTable: String {
        let (schema, table) = tableParts
        return "\(schema.quotedName).\(table.quotedName)"
    }

    /// The schema, `public` unless said, and the name of a table, from `schema.table` or as SQL
    /// writes names that it would not understand otherwise, `schema."Table"`.
    package var tableParts: (schema: String, table: String) {
        let parts = unquotedParts ?? split(separator: ".", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (parts[0], parts[1]) : ("public", unquotedParts?.first ?? self)
    }

    /// The parts between points, of which some stand within quotation marks; `nil` if none does, or
    /// not so that it can be read.
    private var unquotedParts: [String]? {
        guard contains("\"") else { return nil }
        var parts = [""]
        var isWithin = false
        var rest = self[...]
        while let next = rest.popFirst() {
            if next == "\"", isWithin, rest.first == "\"" {
                rest.removeFirst()
                parts[parts.count - 1].append("\"")
            } else if next == "\"" {
                isWithin.toggle()
            } else if next == ".", !isWithin {
                parts.append("")
            } else {
                parts[parts.count - 1].append(next)
            }
        }
        return isWithin || parts.count > 2 || parts.contains("") ? nil : parts
    }
}
