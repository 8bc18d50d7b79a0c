extension PostgresKind {
    /// Creates the kind of a type from its name.
    ///
    /// The name is that which PostgreSQL shows, such as `numeric(10,2)[]`, or that of the
    /// catalogue, such as `_numeric`. The result is `nil` for types read as text and for users' own
    /// types.
    init?(typeName name: String) {
        // The sender chooses the name, and each opening bracket starts a search for its end.
        guard name.utf8.count <= Self.longestName else { return nil }
        // The precision may be in the middle: `timestamp(3) without time zone[]`.
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

    /// The maximum length of a type's name.
    ///
    /// No built-in type has a longer one, including its modifiers.
    private static let longestName = 128

    private static func list(ofType name: String) -> PostgresKind {
        .list(scalars[name] ?? .text, separator: name == "box" ? UInt8(ascii: ";") : comma)
    }

    /// Returns whether the type is built in.
    ///
    /// A user's type may be called `_mood` without being an array.
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
