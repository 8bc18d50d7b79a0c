/// What the values of a column are, by its type.
package indirect enum ColumnKind: Sendable, Hashable {
    case boolean, integer, double, numeric, text, moment, json, bytes, uuid
    case list(ColumnKind)

    /// The kind of a type that every PostgreSQL has, by its number; `nil` for those made by users.
    ///
    /// Types that are not named here are texts, as PostgreSQL writes them: intervals, times of day,
    /// money, networks, ranges, geometry and the like.
    init?(builtIn type: UInt32) {
        if let kind = Self.scalars[type] {
            self = kind
        } else if let element = Self.arrays[type] {
            self = .list(element)
        } else if type < Self.firstMade {
            self = .text
        } else {
            return nil
        }
    }

    /// Numbers from here on are given to what users make (`FirstNormalObjectId`).
    static let firstMade: UInt32 = 16_384

    private static let scalars: [UInt32: ColumnKind] = [
        16: .boolean, 20: .integer, 21: .integer, 23: .integer, 26: .integer, 700: .double,
        701: .double, 1700: .numeric, 1082: .moment, 1114: .moment, 1184: .moment, 114: .json,
        3802: .json, 17: .bytes, 2950: .uuid,
    ]

    /// The types of arrays, with what their elements are.
    private static let arrays: [UInt32: ColumnKind] = [
        1000: .boolean, 1016: .integer, 1005: .integer, 1007: .integer, 1028: .integer,
        1021: .double, 1022: .double, 1231: .numeric, 1182: .moment, 1115: .moment,
        1185: .moment, 199: .json, 3807: .json, 1001: .bytes, 2951: .uuid,
        // char, name, text, bpchar, varchar, time, interval, timetz, inet, cidr, macaddr, xml and
        // money
        1002: .text, 1003: .text, 1009: .text, 1014: .text, 1015: .text, 1183: .text, 1187: .text,
        1270: .text, 1041: .text, 651: .text, 1040: .text, 143: .text, 791: .text,
    ]
}

/// The types that users made, as the catalogue has them.
package struct TypeCatalogue: Sendable, Hashable {
    /// A type, as far as it matters here.
    package struct Entry: Sendable, Hashable {
        /// What a domain is a domain of.
        package var base: UInt32?
        /// What an array is an array of.
        package var element: UInt32?

        package init(base: UInt32? = nil, element: UInt32? = nil) {
            self.base = base
            self.element = element
        }
    }

    private var entries: [UInt32: Entry]

    package init(_ entries: [UInt32: Entry] = [:]) {
        self.entries = entries
    }

    /// Whether `type` is known, or needs no catalogue.
    package func knows(_ type: UInt32) -> Bool {
        ColumnKind(builtIn: type) != nil || entries[type] != nil
    }

    /// What the values of `type` are; a type that is not known is read as text.
    package func kind(of type: UInt32) -> ColumnKind {
        kind(of: type, depth: 0)
    }

    private func kind(of type: UInt32, depth: Int) -> ColumnKind {
        if let kind = ColumnKind(builtIn: type) { return kind }
        // Domains of domains are rare, and circles are not; the bound is for a damaged catalogue.
        guard depth < 16, let entry = entries[type] else { return .text }
        if let base = entry.base { return kind(of: base, depth: depth + 1) }
        if let element = entry.element { return .list(kind(of: element, depth: depth + 1)) }
        return .text
    }
}
