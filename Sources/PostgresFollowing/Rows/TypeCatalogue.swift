package import ChangeSources

extension PostgresKind {
    /// Creates the kind of a built-in type from its OID; `nil` for types that users created.
    ///
    /// All other built-in types are texts in PostgreSQL's format: intervals, times of day, money,
    /// networks, ranges, geometry and the like.
    init?(builtIn type: UInt32) {
        if let kind = Self.scalars[type] {
            self = kind
        } else if let element = Self.arrays[type] {
            self = .list(element)
        } else if Self.arraysOfTexts.contains(type) {
            self = .list(.text)
        } else if type == Self.arrayOfBoxes {
            self = .list(.text, separator: UInt8(ascii: ";"))
        } else if type < Self.firstMade {
            self = .text
        } else {
            return nil
        }
    }

    /// The first OID of objects that users create (`FirstNormalObjectId`).
    static let firstMade: UInt32 = 16_384

    private static let scalars: [UInt32: PostgresKind] = [
        16: .boolean, 20: .integer, 21: .integer, 23: .integer, 26: .integer, 700: .double,
        701: .double, 1700: .numeric, 1082: .moment, 1114: .moment, 1184: .moment, 114: .json,
        3802: .json, 17: .bytes, 2950: .uuid,
    ]

    /// The types of arrays whose elements are not texts, with the kinds of the elements.
    private static let arrays: [UInt32: PostgresKind] = [
        1000: .boolean, 1016: .integer, 1005: .integer, 1007: .integer, 1028: .integer,
        1021: .double, 1022: .double, 1231: .numeric, 1182: .moment, 1115: .moment,
        1185: .moment, 199: .json, 3807: .json, 1001: .bytes, 2951: .uuid,
    ]

    /// The types of arrays whose elements are read as texts.
    private static let arraysOfTexts: Set<UInt32> = [
        // Texts, names, times of day, intervals, networks, money and XML.
        1002, 1003, 1009, 1014, 1015, 1183, 1187, 1270, 1040, 775, 1041, 651, 791, 143,
        // Bits, geometry and search.
        1561, 1563, 1017, 1018, 629, 1019, 1027, 719, 3643, 3644, 3645, 3735, 3770, 4073,
        // Ranges and multiranges.
        3905, 3907, 3909, 3911, 3913, 3927, 6150, 6151, 6152, 6153, 6155, 6157,
        // Transactions, places, and names of the catalogue.
        271, 1006, 1010, 1011, 1012, 1013, 1034, 2201, 2949, 3221, 5039, 1008, 2207, 2208, 2209,
        2210, 2211, 4090, 4097, 4192,
        // Rows of the catalogue, and `cstring`.
        210, 270, 272, 273, 1263,
    ]

    private static let arrayOfBoxes: UInt32 = 1020
}

/// The types that users created, from the catalogue.
package struct TypeCatalogue: Sendable, Hashable {
    /// The relevant properties of a type.
    package struct Entry: Sendable, Hashable {
        /// The type on which a domain is based.
        package var base: UInt32?
        /// The type of an array's elements.
        package var element: UInt32?
        /// The separator between two elements of an array.
        package var separator: UInt8

        package init(
            base: UInt32? = nil, element: UInt32? = nil, separator: UInt8 = PostgresKind.comma
        ) {
            self.base = base
            self.element = element
            self.separator = separator
        }
    }

    private var entries: [UInt32: Entry]

    package init(_ entries: [UInt32: Entry] = [:]) {
        self.entries = entries
    }

    /// Returns whether `type` is known or built in.
    package func knows(_ type: UInt32) -> Bool {
        PostgresKind(builtIn: type) != nil || entries[type] != nil
    }

    /// Returns the kind of the values of `type`; an unknown type is read as text.
    package func kind(of type: UInt32) -> PostgresKind {
        kind(of: type, depth: 0)
    }

    private func kind(of type: UInt32, depth: Int) -> PostgresKind {
        if let kind = PostgresKind(builtIn: type) { return kind }
        // Domains are rarely nested and never cyclic; the limit is for a damaged catalogue.
        guard depth < 16, let entry = entries[type] else { return .text }
        if let base = entry.base { return kind(of: base, depth: depth + 1) }
        if let element = entry.element {
            return .list(kind(of: element, depth: depth + 1), separator: entry.separator)
        }
        return .text
    }
}
