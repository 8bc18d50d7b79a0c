import RelayModel

/// Parsing of GEOWITHIN and its shapes.
extension RQLParser {
    /// Reads the shape after `path GEOWITHIN`.
    mutating func geoWithin(_ left: Operand) throws(PredicateError) -> Node {
        guard left.shape == .path else {
            throw PredicateError(
                .parse, "GEOWITHIN needs the path of a property before it; found none",
                at: left.span, expected: "the path of a property")
        }
        var comparison = Comparison(left.expression, .geoWithin, try shape())
        comparison.quantifier = left.quantifier
        comparison.rules = .realm
        comparison.span = SourceSpan(
            offset: left.span.offset, length: lastEnd - left.span.offset)
        return .comparison(comparison)
    }

    /// Reads a shape, or an argument that is a shape.
    mutating func shape() throws(PredicateError) -> Expression {
        let function: RecordPredicate.Function
        switch current.kind {
        case .argument:
            let token = current
            let argument = try argument()
            guard case .constant(let value) = argument else { return argument }
            guard let shape = GeographicShape.expression(of: value) else {
                throw PredicateError(
                    .check, "the argument is not a shape", at: span(of: token),
                    found: value.kind,
                    expected: "a text such as geobox([0, 0], [1, 1]), or a GeoJSON polygon")
            }
            try GeographicShape.check(shape, at: span(of: token))
            return shape
        case .keyword(.geoBox): function = .geoBox
        case .keyword(.geoCircle): function = .geoCircle
        case .keyword(.geoPolygon): function = .geoPolygon
        default: throw unexpected(expected: "geobox, geocircle, geopolygon or an argument")
        }
        let start = current
        advance()
        try expect(.openParenthesis)
        let arguments = try shapeArguments(function)
        try expect(.closeParenthesis)
        let call = Expression.call(function, arguments).normalized(.realm)
        try GeographicShape.check(call, at: span(of: start))
        return call
    }

    private mutating func shapeArguments(
        _ function: RecordPredicate.Function
    ) throws(PredicateError) -> [Expression] {
        switch function {
        case .geoBox:
            let corner = try point()
            try expect(.comma)
            return [corner, try point()]
        case .geoCircle:
            let center = try point()
            try expect(.comma)
            return [center, try coordinate(named: "a radius in radians")]
        default:
            var rings = [try ring()]
            while current.kind == .symbol(.comma) {
                advance()
                rings.append(try ring())
            }
            return rings
        }
    }

    private mutating func ring() throws(PredicateError) -> Expression {
        try expect(.openBrace)
        var points = [try point()]
        while current.kind == .symbol(.comma) {
            advance()
            points.append(try point())
            guard points.count <= Limits.maximumPredicateListElements else {
                throw unexpected(expected: "fewer points")
            }
        }
        try expect(.closeBrace)
        return .list(points)
    }

    /// Reads `[longitude, latitude]`.
    ///
    /// An altitude is allowed, and ignored.
    private mutating func point() throws(PredicateError) -> Expression {
        try expect(.openBracket)
        let longitude = try coordinate(named: "a longitude")
        try expect(.comma)
        let latitude = try coordinate(named: "a latitude")
        if current.kind == .symbol(.comma) {
            advance()
            _ = try coordinate(named: "an altitude")
        }
        try expect(.closeBracket)
        return .list([longitude, latitude])
    }

    private mutating func coordinate(named name: String) throws(PredicateError) -> Expression {
        switch current.kind {
        case .argument: return try argument()
        case .constant(.integer(let number), _):
            advance()
            return .constant(.double(Double(number)))
        case .constant(.double(let number), _):
            advance()
            return .constant(.double(number))
        default: throw unexpected(expected: name)
        }
    }
}
