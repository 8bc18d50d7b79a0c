import RelayModel

/// Parsing of the suffixes after a query.
extension RQLParser {
    /// Reads any number of SORT, DISTINCT and LIMIT suffixes.
    mutating func suffixes() throws(PredicateError) -> [RealmQuery.Suffix] {
        var suffixes: [RealmQuery.Suffix] = []
        while true {
            switch current.kind {
            case .keyword(.sort):
                try open()
                suffixes.append(
                    .sort(
                        try list { parser throws(PredicateError) in
                            try parser.sortKey()
                        }))
            case .keyword(.distinct):
                try open()
                suffixes.append(
                    .distinct(
                        try list { parser throws(PredicateError) in
                            try parser.plainPath()
                        }))
            case .keyword(.limit):
                try open()
                suffixes.append(.limit(try limit()))
            default: return suffixes
            }
            try expect(.closeParenthesis)
        }
    }

    private mutating func open() throws(PredicateError) {
        advance()
        try expect(.openParenthesis)
    }

    private mutating func list<Element>(
        of read: (inout RQLParser) throws(PredicateError) -> Element
    ) throws(PredicateError) -> [Element] {
        var elements = [try read(&self)]
        while current.kind == .symbol(.comma) {
            advance()
            elements.append(try read(&self))
        }
        return elements
    }

    private mutating func sortKey() throws(PredicateError) -> RealmQuery.SortKey {
        let path = try plainPath()
        switch current.kind {
        case .keyword(.ascending):
            advance()
            return RealmQuery.SortKey(path: path, order: .ascending)
        case .keyword(.descending):
            advance()
            return RealmQuery.SortKey(path: path, order: .descending)
        default: throw unexpected(expected: "ASC or DESC")
        }
    }

    private mutating func plainPath() throws(PredicateError) -> RecordPredicate.RecordPath {
        let start = current
        guard case .path(let path) = try self.path().expression else {
            throw unexpected(start, expected: "the path of a property")
        }
        return path
    }

    private mutating func limit() throws(PredicateError) -> Int {
        guard case .constant(.integer(let number), isNatural: true) = current.kind else {
            throw unexpected(expected: "a number of records")
        }
        advance()
        return Int(number)
    }
}
