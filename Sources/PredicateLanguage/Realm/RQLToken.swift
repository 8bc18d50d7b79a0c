import RelayModel

/// A token of the Realm Query Language, with its place in the text.
struct RQLToken: Sendable, Hashable {
    /// What the token is.
    let kind: Kind
    /// Where it begins, in UTF-8 bytes.
    let offset: Int
    /// How many UTF-8 bytes it takes.
    let length: Int

    /// The first byte after the token.
    var end: Int { offset + length }

    /// What a token can be.
    enum Kind: Sendable, Hashable {
        /// A word that the grammar knows.
        case keyword(RQLKeyword)
        /// The name of a property, with its escapes decoded.
        case name(String)
        /// A constant; `isNatural` when it is written in digits only, as an index or a limit is.
        case constant(FieldValue, isNatural: Bool)
        /// An object constant by its internal key (`O12`, `L3:12`).
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

/// The words of the grammar, whichever way they may be spelled.
enum RQLKeyword: Sendable, Hashable {
    case and, or, not
    case any, all, none
    case truePredicate, falsePredicate
    case isIn, between, beginsWith, endsWith, contains, like, text, geoWithin
    case geoBox, geoCircle, geoPolygon
    case object, binary, subquery
    case sort, distinct, limit, ascending, descending
    case first, last, size

    /// Whether the word may also be the name of a property.
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

/// The symbols.
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
