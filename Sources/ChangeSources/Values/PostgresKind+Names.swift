extension PostgresKind {
    /// The kind of a type by the name that PostgreSQL gives it, as `numeric(10,2)[]`, or that its
    /// catalogue has, as `_numeric`; `nil` for those that are texts, and those that users made.
    init?(typeName name: String) {
        // Whoever sends may write what they like: each opening bracket looks for its end.
        guard name.utf8.count <= Self.longestName else { return nil }
        // `timestamp(3) without time zone[]`: the number may stand in the middle.
        let words = name.replacing(/\([^)]*\)/, with: "")
        if words.hasSuffix("[]") {
            self = Self.list(ofType: String(words.dropLast(2)))
        } else if let kind = Self.scalars[words] {
            self = kind
        } else if words.hasPrefix("_"), Self.isBuiltIn(String(words.dropFirst())) {
            self = Self.list(ofType: String(words.dropFirst()))
        } else {
            return nil
        }
    }

    /// No type that is none of its user's has a longer one, with its numbers.
    private static let longestName = 128

    private static func list(ofType name: String) -> PostgresKind {
        .list(scalars[name] ?? .text, separator: name == "box" ? UInt8(ascii: ";") : comma)
    }

    /// Users may call a type `_mood` that is no array.
    private static func isBuiltIn(_ name: String) -> Bool {
        scalars[name] != nil || textsInCatalogue.contains(name)
    }

    private static let scalars: [String: PostgresKind] = [
        "smallint": .integer, "integer": .integer, "bigint": .integer, "oid": .integer,
        "int2": .integer, "int4": .integer, "int8": .integer, "numeric": .numeric,
        "real": .double, "double precision": .double, "float4": .double, "float8": .double,
        "boolean": .boolean, "bool": .boolean, "timestamp with time zone": .moment,
        "timestamp without time zone": .moment, "timestamptz": .moment, "timestamp": .moment,
        "date": .moment, "json": .json, "jsonb": .json, "bytea": .bytes, "uuid": .uuid,
    ]

    private static let textsInCatalogue: Set<String> = [
        "text", "varchar", "bpchar", "char", "name", "time", "timetz", "interval", "inet", "cidr",
        "macaddr", "macaddr8", "money", "xml", "bit", "varbit", "point", "box", "int4range",
        "int8range", "numrange", "daterange", "tsrange", "tstzrange",
    ]
}
