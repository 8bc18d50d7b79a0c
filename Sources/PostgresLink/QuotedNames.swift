extension String {
    /// The text as a quoted name in SQL.
    package var quotedName: String { "\"\(doubling("\""))\"" }

    /// The text as a name in SQL for messages; it is quoted only if SQL would not read it as this
    /// name otherwise.
    package var shownName: String {
        let isPlain =
            utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
            } && utf8.first.map { !(0x30...0x39).contains($0) } ?? false
        return isPlain && !Self.reserved.contains(self) ? self : quotedName
    }

    /// PostgreSQL's reserved words, which are names only if they are quoted.
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

    /// The text as a string literal in SQL.
    package var quotedText: String { "'\(doubling("'"))'" }

    /// Returns this text with each `mark` doubled.
    ///
    /// It works on Unicode scalars. Names come from databases that others control, and in SQL a
    /// quotation mark ends a name even if combining characters form one `Character` with it.
    private func doubling(_ mark: Unicode.Scalar) -> String {
        guard unicodeScalars.contains(mark) else { return self }
        var doubled = ""
        for scalar in unicodeScalars {
            if scalar == mark { doubled.unicodeScalars.append(scalar) }
            doubled.unicodeScalars.append(scalar)
        }
        return doubled
    }

    /// `schema.table` as quoted names in SQL; the schema is `public` if none is given.
    package var quotedTable: String {
        let (schema, table) = tableParts
        return "\(schema.quotedName).\(table.quotedName)"
    }

    /// The schema, `public` if none is given, and the name of a table.
    ///
    /// It accepts `schema.table`, and quoted names as SQL has them, such as `schema."Table"`.
    package var tableParts: (schema: String, table: String) {
        let parts = unquotedParts ?? split(separator: ".", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (parts[0], parts[1]) : ("public", unquotedParts?.first ?? self)
    }

    /// The parts between dots, if some are in quotation marks; `nil` if none is, or the text is not
    /// well formed.
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
