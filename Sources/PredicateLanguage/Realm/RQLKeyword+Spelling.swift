extension RQLKeyword {
    /// The keywords that are not case-sensitive.
    private static let foldedSpellings: [String: RQLKeyword] = [
        "and": .and, "or": .or, "truepredicate": .truePredicate,
        "falsepredicate": .falsePredicate, "between": .between, "beginswith": .beginsWith,
        "endswith": .endsWith, "contains": .contains, "like": .like, "text": .text,
        "geowithin": .geoWithin, "geobox": .geoBox, "geocircle": .geoCircle,
        "geopolygon": .geoPolygon, "obj": .object, "binary": .binary, "bin": .binary,
        "subquery": .subquery, "sort": .sort, "distinct": .distinct, "limit": .limit,
        "ascending": .ascending, "asc": .ascending, "descending": .descending,
        "desc": .descending,
    ]

    /// The keywords that have only these spellings.
    private static let exactSpellings: [String: RQLKeyword] = [
        "not": .not, "NOT": .not, "any": .any, "ANY": .any, "some": .any, "SOME": .any,
        "all": .all, "ALL": .all, "none": .none, "NONE": .none, "in": .isIn, "IN": .isIn,
        "first": .first, "FIRST": .first, "last": .last, "LAST": .last, "size": .size,
        "SIZE": .size,
    ]

    /// Creates the keyword that is spelt `word`.
    ///
    /// Some keywords are not case-sensitive, and others have only some spellings.
    init?(spelling word: String) {
        guard let found = Self.exactSpellings[word] ?? Self.foldedSpellings[word.lowercased()]
        else { return nil }
        self = found
    }

    /// The spelling in error messages.
    var spelling: String {
        switch self {
        case .and: "AND"
        case .or: "OR"
        case .not: "NOT"
        case .any: "ANY"
        case .all: "ALL"
        case .none: "NONE"
        case .truePredicate: "TRUEPREDICATE"
        case .falsePredicate: "FALSEPREDICATE"
        case .isIn: "IN"
        case .between: "BETWEEN"
        case .beginsWith: "BEGINSWITH"
        case .endsWith: "ENDSWITH"
        case .contains: "CONTAINS"
        case .like: "LIKE"
        case .text: "TEXT"
        case .geoWithin: "GEOWITHIN"
        case .geoBox: "geobox"
        case .geoCircle: "geocircle"
        case .geoPolygon: "geopolygon"
        case .object: "obj"
        case .binary: "binary"
        case .subquery: "SUBQUERY"
        case .sort: "SORT"
        case .distinct: "DISTINCT"
        case .limit: "LIMIT"
        case .ascending: "ASC"
        case .descending: "DESC"
        case .first: "FIRST"
        case .last: "LAST"
        case .size: "SIZE"
        }
    }
}
