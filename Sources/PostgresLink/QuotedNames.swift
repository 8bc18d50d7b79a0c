extension String {
    /// As a name in SQL.
    package var quotedName: String { "\"\(doubling("\""))\"" }

    /// As a name in SQL that people are shown: quoted where SQL would not understand it
    /// otherwise, or take it for a word of its own.
    package var shownName: String {
        let isPlain =
            utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
            } && utf8.first.map { !(0x30...0x39).contains($0) } ?? false
        return isPlain && !Self.reserved.contains(self) ? self : quotedName
    }

    /// PostgreSQL's reserved words, which name nothing unless they are quoted.
    private static let reserved: Set<String> = [
        "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric",
        "authorization", "binary", "both", "case", "cast", "check", "collate", "collation",
        "column", "concurrently", "constraint", "create", "cross", "current_catalog",
        "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
        "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except",
        "false", "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group", "having",
        "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral",
        "leading", "left", "like", "limit", "localtime", "localtimestamp", "natural", "not",
        "notnull", "null", "offset", "on", "only", "or", "order", "outer", "overlaps", "placing",
        "primary", "references", "returning", "right", "select", "session_user", "similar", "some",
        "symmetric", "system_user", "table", "tablesample", "then", "to", "trailing", "true",
        "union", "unique", "user", "using", "variadic", "verbose", "when", "where", "window",
        "with",
    ]

    /// As a text in SQL.
    package var quotedText: String { "'\(doubling("'"))'" }

    /// This text with each `mark` twice, whatever follows it.
    ///
    /// Names come from databases, where others make them, and a mark ends a name for SQL also where
    /// combining characters make one `Character` of it and them.
    private func doubling(_ mark: Unicode.Scalar) -> String {
        guard unicodeScalars.contains(mark) else { return self }
        var doubled = ""
        for scalar in unicodeScalars {
            if scalar == mark { doubled.unicodeScalars.append(scalar) }
            doubled.unicodeScalars.append(scalar)
        }
        return doubled
    }

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
        guard unicodeScalars.contains("\"") else { return nil }
        var parts = [""]
        var isWithin = false
        var rest = unicodeScalars[...]
        while let next = rest.popFirst() {
            if next == "\"", isWithin, rest.first == "\"" {
                rest.removeFirst()
                parts[parts.count - 1].append("\"")
            } else if next == "\"" {
                isWithin.toggle()
            } else if next == ".", !isWithin {
                parts.append("")
            } else {
                parts[parts.count - 1].unicodeScalars.append(next)
            }
        }
        return isWithin || parts.count > 2 || parts.contains("") ? nil : parts
    }
}
