package import RelayModel

// Values as comparisons under Realm's rules see them, for an index that looks up what a comparison
// would find.

extension IndexedText {
    /// Returns a text or binary data as Realm's comparisons search it: its code points, or its
    /// bytes as code points, each folded on its own if case is ignored.
    package static func realmText(_ value: FieldValue, ignoringCase: Bool) -> String {
        var scalars = String.UnicodeScalarView()
        for unit in RealmText(value, ignoringCase ? .ignoringCase : []).units {
            // Units are code points of texts, or bytes.
            if let scalar = Unicode.Scalar(unit) { scalars.append(scalar) }
        }
        return String(scalars)
    }
}

/// A component of a path that is never an error by Realm's rules.
///
/// Its value may be nil.
package enum RealmStep: Sendable, Hashable, Codable {
    /// The member with the given name. Applied to a list, it is that member of each element.
    case member(String)
    /// The value of a dictionary's key: `["key"]`.
    case key(String)
    /// The element of a list at an index: `[n]`.
    case index(Int64)
    /// The first element: `[FIRST]`.
    case first
    /// The last element: `[LAST]`.
    case last

    /// The step as a component of a path.
    var component: RecordPredicate.RecordPath.Component {
        switch self {
        case .member(let name): .member(name)
        case .key(let key): .element(.constant(.string(key)))
        case .index(let number): .element(.constant(.integer(number)))
        case .first: .first
        case .last: .last
        }
    }

    /// Creates a step, or returns `nil` for a component that may be an error, or that has more than
    /// one value.
    init?(_ component: RecordPredicate.RecordPath.Component) {
        switch component {
        case .member(let name): self = .member(name)
        case .element(.constant(.string(let key))): self = .key(key)
        case .element(.constant(.integer(let number))): self = .index(number)
        case .first: self = .first
        case .last: self = .last
        default: return nil
        }
    }
}

extension RecordPredicate.RecordPath {
    /// The steps of the path, if it is never an error by Realm's rules.
    package var realmSteps: [RealmStep]? {
        let steps = components.compactMap { RealmStep($0) }
        return steps.count == components.count ? steps : nil
    }
}

extension FieldValue {
    /// Returns the value at a path of plain member names, as a comparison under Realm's rules sees
    /// it.
    ///
    /// The value is a list if the path goes through one.
    package func realmValue(at names: [String]) -> FieldValue {
        realmValue(at: names.map { RealmStep.member($0) })
    }

    /// Returns the value at a path, as a comparison under Realm's rules sees it.
    package func realmValue(at steps: [RealmStep]) -> FieldValue {
        let path = RecordPredicate.RecordPath(steps.map(\.component))
        // None of these steps can be an error.
        return (try? RealmEvaluator(record: self).operand(.path(path)).fieldValue) ?? .null
    }

    /// Returns the record name of the link that an object with these members may represent by
    /// Realm's rules.
    package static func linkName(_ members: RecordFields) -> String? {
        (members["recordName"] ?? members["_id"])?.primaryKeyText
    }
}

extension FieldValue {
    /// Returns the elements of a set in the order in which comparisons go through them.
    ///
    /// IN compares two lists element by element, so the order must be the same in every process.
    package static func realmElements(of values: Set<FieldValue>) -> [FieldValue] {
        values.inOrder
    }

    /// The locations that GEOWITHIN examines, any of which may satisfy it.
    ///
    /// A list may be two coordinates, or a list of locations.
    package var realmPlaces: [Location] {
        let values: [FieldValue] =
            switch RealmEvaluator.lifted(self) {
            case .single(let value): [value]
            case .list(let values): [.list(values)] + values
            }
        return values.compactMap { GeographicShape.location($0) }
    }
}

extension RecordPredicate.Expression {
    /// Circles that together contain every location inside the shape of GEOWITHIN.
    ///
    /// It is `nil` if the expression is not a shape, for a box wider than half the Earth, and for a
    /// polygon of nearly that size.
    package var realmCircles: [(centre: Location, metres: Double)]? {
        guard case .success(let shape) = GeographicShape.read(self) else { return nil }
        switch shape {
        case .circle(let centre, let radius): return [(centre, radius * Functions.earthRadius)]
        case .box(let southWest, let northEast):
            let west = southWest.longitude
            let width = northEast.longitude - west + (northEast.longitude < west ? 360 : 0)
            let middle = west + width / 2
            guard width <= 180,
                let centre = Location(
                    latitude: (southWest.latitude + northEast.latitude) / 2,
                    longitude: middle > 180 ? middle - 360 : middle),
                let northWest = Location(latitude: northEast.latitude, longitude: west)
            else { return nil }
            // In a box of at most that width, no point is farther from the centre than the corners.
            // One metre is added for rounding.
            let farthest = max(centre.metres(to: southWest), centre.metres(to: northWest))
            return [(centre, farthest + 1)]
        case .polygon(let outer, _):
            guard let (centre, radius) = outer.circle, let opposite = centre.opposite else {
                return nil
            }
            let metres = radius * Functions.earthRadius + 1
            // The inside of a polygon with crossing edges may be on the opposite side of the Earth.
            return [(centre, metres), (opposite, metres)]
        }
    }
}
