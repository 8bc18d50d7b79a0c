import RelayModel

/// A token of the Realm Query Language, with its place in the text.
struct RQLToken: Sendable, Hashable {
    /// The kind of the token.
    let kind: Kind
    /// The offset of the token's first byte, in UTF-8.
    let offset: Int
    /// The number of UTF-8 bytes of the token.
    let length: Int

    /// The offset of the first byte after the token.
    var end: Int { offset + length }

    /// The kinds of tokens.
    enum Kind: Sendable, Hashable {
        /// A keyword of the grammar.
        case keyword(RQLKeyword)
        /// The name of a property, with its escapes decoded.
        case name(String)
        /// A constant. `isNatural` is true if it consists of digits only, as an index or a limit
        /// must.
        case constant(FieldValue, isNatural: Bool)
        /// An object constant, by its internal key (`O12`, `L3:12`).
        case objectKey
        /// A value argument, `$0`.
        case argument(Int)
        /// A key path argument, `$K0`.
        case keyPathArgument(Int)
        /// A word that begins with `@`.
        case member(RQLMember)
        /// A symbol.
        case symbol(RQLSymbol)
        /// The end of the text.
        case end
    }
}

/// The keywords of the grammar, independent of their spelling.
enum RQLKeyword: Sendable, Hashable {
    case and, or, not
    case any, all, none
    case truePredicate, falsePredicate
    case isIn, between, beginsWith, endsWith, contains, like, text, geoWithin
    case geoBox, geoCircle, geoPolygon
    case object, binary, subquery
    case sort, distinct, limit, ascending, descending
    case first, last, size

    /// Whether the keyword may also be the name of a property.
    var mayBeName: Bool {
        switch self {
        case .isIn, .between, .contains, .beginsWith, .endsWith, .like, .text, .sort, .distinct,
            .limit, .ascending, .descending, .binary, .first, .last, .size:
            true
        default: false
        }
    }
}

/// The words that begin with `@`.
enum RQLMember: String, Sendable, Hashable, CaseIterable {
    case count = "@count"
    case size = "@size"
    case minimum = "@min"
    case maximum = "@max"
    case sum = "@sum"
    case average = "@avg"
    case links = "@links"
    case type = "@type"
    case keys = "@keys"
    case values = "@values"
}

/// The symbols of the grammar.
///
/// Longer symbols come before their beginnings, so that the lexer finds the longest one.
enum RQLSymbol: String, Sendable, Hashable, CaseIterable {
    case caseOption = "[c]"
    case equal = "=="
    case lessOrEqual = "<="
    case equalLess = "=<"
    case greaterOrEqual = ">="
    case equalGreater = "=>"
    case notEqual = "!="
    case lessGreater = "<>"
    case doubleAmpersand = "&&"
    case doubleBar = "||"
    case singleEqual = "="
    case less = "<"
    case greater = ">"
    case exclamation = "!"
    case openParenthesis = "("
    case closeParenthesis = ")"
    case openBrace = "{"
    case closeBrace = "}"
    case openBracket = "["
    case closeBracket = "]"
    case comma = ","
    case dot = "."
    case plus = "+"
    case minus = "-"
    case asterisk = "*"
    case slash = "/"
}
