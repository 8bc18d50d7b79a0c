import RelayModel

/// An area on the sphere, for RQL's GEOWITHIN.
enum GeographicShape {
    /// A box between two corners, including its edges. It crosses the 180th meridian if the
    /// longitude of its western corner is greater than that of its eastern corner.
    case box(southWest: Location, northEast: Location)
    /// A circle of all points within an angle of its centre. The radius is in radians.
    case circle(center: Location, radius: Double)
    /// A ring of great-circle edges around an area of at most a hemisphere, with holes.
    case polygon(outer: SphericalRing, holes: [SphericalRing])

    /// Reads the shape from its call in the tree.
    ///
    /// Returns the flaw if the call is not a shape.
    static func read(_ expression: RecordPredicate.Expression) -> Result<Self, Flaw> {
        if case .constant(let value) = expression, let shape = Self.expression(of: value) {
            return read(shape)
        }
        guard case .call(let function, let arguments) = expression else {
            return .failure(Flaw(reason: "a shape is expected"))
        }
        switch function {
        case .geoBox: return box(arguments)
        case .geoCircle: return circle(arguments)
        case .geoPolygon: return polygon(arguments)
        default: return .failure(Flaw(reason: "\(function.rawValue) is not a shape"))
        }
    }

    /// Returns the call for a shape that is given as one value: a text in RQL's notation, as Realm
    /// accepts it, or a GeoJSON polygon.
    static func expression(of value: FieldValue) -> RecordPredicate.Expression? {
        switch value {
        case .string(let text):
            guard text.utf8.count <= Limits.maximumPredicateBytes,
                let tokens = try? RQLLexer.tokens(of: text)
            else { return nil }
            var parser = RQLParser(tokens: tokens, text: text, arguments: [])
            guard let shape = try? parser.shape(), case .call(_, let arguments) = shape,
                arguments.allSatisfy({ $0.literal != nil }), parser.current.kind == .end
            else { return nil }
            return shape
        case .map(let members):
            guard members["type"] == .string("Polygon"),
                case .list(let rings)? = members["coordinates"], !rings.isEmpty
            else { return nil }
            return .call(.geoPolygon, rings.map { .constant($0) })
        default: return nil
        }
    }

    /// The reason why an expression is not a shape.
    struct Flaw: Error {
        let reason: String
    }

    /// Throws for constants that cannot be a shape.
    ///
    /// Expressions with variables are not checked.
    static func check(
        _ expression: RecordPredicate.Expression, at span: SourceSpan
    ) throws(PredicateError) {
        guard case .call(_, let arguments) = expression,
            arguments.allSatisfy({ $0.literal != nil }),
            case .failure(let flaw) = read(expression)
        else { return }
        throw PredicateError(
            .check, flaw.reason, at: span,
            expected: "geobox(corner, corner), geocircle(centre, radians) or geopolygon({ring})")
    }

    private static func box(_ arguments: [RecordPredicate.Expression]) -> Result<Self, Flaw> {
        guard arguments.count == 2, let first = location(arguments[0].literal),
            let second = location(arguments[1].literal)
        else { return .failure(badPoint) }
        guard first.latitude <= second.latitude else {
            return .failure(Flaw(reason: "the first corner of a box must be the southern one"))
        }
        return .success(.box(southWest: first, northEast: second))
    }

    private static func circle(_ arguments: [RecordPredicate.Expression]) -> Result<Self, Flaw> {
        guard arguments.count == 2, let center = location(arguments[0].literal) else {
            return .failure(badPoint)
        }
        guard let radius = arguments[1].literal?.numberAsDouble, radius >= 0 else {
            return .failure(Flaw(reason: "a radius must be a number of radians, 0 or more"))
        }
        return .success(.circle(center: center, radius: radius))
    }

    private static func polygon(_ arguments: [RecordPredicate.Expression]) -> Result<Self, Flaw> {
        var rings: [SphericalRing] = []
        for argument in arguments {
            guard case .list(let points)? = argument.literal else { return .failure(badPoint) }
            let corners = points.compactMap(location)
            guard corners.count == points.count else { return .failure(badPoint) }
            guard corners.first == corners.last, corners.count >= 4 else {
                return .failure(
                    Flaw(
                        reason: "a ring needs at least three corners, and must end where it begins")
                )
            }
            rings.append(SphericalRing(corners.dropLast()))
        }
        guard let outer = rings.first else { return .failure(badPoint) }
        return .success(.polygon(outer: outer, holes: Array(rings.dropFirst())))
    }

    private static let badPoint = Flaw(
        reason: "a point must be [longitude, latitude], -180 to 180 and -90 to 90 degrees")

    /// Returns the location that a value represents: a location, `[longitude, latitude]`, or a
    /// GeoJSON point.
    static func location(_ value: FieldValue?) -> Location? {
        switch value {
        case .location(let place): return place
        case .list(let numbers) where numbers.count >= 2:
            guard let longitude = numbers[0].numberAsDouble,
                let latitude = numbers[1].numberAsDouble
            else { return nil }
            return Location(latitude: latitude, longitude: longitude)
        case .map(let members):
            guard members["type"] == .string("Point") else { return nil }
            return location(members["coordinates"])
        default: return nil
        }
    }

    /// Returns whether a location lies inside the shape.
    func contains(_ place: Location) -> Bool {
        switch self {
        case .box(let southWest, let northEast):
            guard (southWest.latitude...northEast.latitude).contains(place.latitude) else {
                return false
            }
            let (west, east) = (southWest.longitude, northEast.longitude)
            return west <= east
                ? (west...east).contains(place.longitude)
                : place.longitude >= west || place.longitude <= east
        case .circle(let center, let radius):
            return SphericalPoint(center).angle(to: SphericalPoint(place)) <= radius
        case .polygon(let outer, let holes):
            let point = SphericalPoint(place)
            return outer.contains(point) && !holes.contains { $0.contains(point) }
        }
    }
}
