extension String {
    /// As a name in SQL.
    package var quotedName: String { "\"\(replacing("\"", with: "\"\""))\"" }
    /// As a text in SQL.
    package var quotedText: String { "'\(replacing("'", with: "''"))'" }

    /// `schema.table` as names in SQL; the schema is `public` unless said.
    package var quotedTable: String {
        let parts = split(separator: ".", maxSplits: 1).map(String.init)
        return parts.count == 2
            ? "\(parts[0].quotedName).\(parts[1].quotedName)" : "\"public\".\(quotedName)"
    }
}
