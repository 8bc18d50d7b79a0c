package import RelayModel

// What comparisons under Realm's rules see of values, for an index that wants to look up what
// they would find.

extension IndexedText {
    /// A text, or data, as Realm's comparisons search it: code points, or bytes taken for code
    /// points, folded one by one where case is ignored.
    package static func realmText(_ value: FieldValue, ignoringCase: Bool) -> String {
        var scalars = String.UnicodeScalarView()
        for unit in RealmText(value, ignoringCase ? .ignoringCase : []).units {
            // Units are code points of texts or bytes.
            if let scalar = Unicode.Scalar(unit) { scalars.append(scalar) }
        }
        return String(scalars)
    }
}

/// A step of a path that always leads somewhere by Realm's rules, if only to nil.
package enum RealmStep: Sendable, Hashable, Codable {
    /// The member of that name, of each element where it is asked of a list.
    case member(String)
    /// `["key"]` of a dictionary.
    case key(String)
    /// `[n]` of a list.
    case index(Int64)
    /// `[FIRST]`.
    case first
    /// `[LAST]`.
    case last

    /// The step in a path.
    var component: RecordPredicate.RecordPath.Component {
        switch self {
        case .member(let name): .member(name)
        case .key(let key): .element(.constant(.string(key)))
        case .index(let number): .element(.constant(.integer(number)))
        case .first: .first
        case .last: .last
        }
    }

    /// `nil` for a step that may have an evaluation error, or asks for more than one value.
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
    /// The steps, if the path never has an evaluation error by Realm's rules.
    package var realmSteps: [RealmStep]? {
        let steps = components.compactMap { RealmStep($0) }
        return steps.count == components.count ? steps : nil
    }
}

extension FieldValue {
    /// The value that a path of plain member names leads to, as a comparison under Realm's rules
    /// sees it: a list where the path passes one.
    package func realmValue(at names: [String]) -> FieldValue {
        realmValue(at: names.map { RealmStep.member($0) })
    }

    /// The value that a path leads to, as a comparison under Realm's rules sees it.
    package func realmValue(at steps: [RealmStep]) -> FieldValue {
        let path = RecordPredicate.RecordPath(steps.map(\.component))
        // None of these steps ever has an evaluation error.
        return (try? RealmEvaluator(record: self).operand(.path(path)).fieldValue) ?? .null
    }

    /// The record name of the link that an object with these members may stand for by Realm's
    /// rules.
    package static func linkName(_ members: RecordFields) -> String? {
        (members["recordName"] ?? members["_id"])?.primaryKeyText
    }
}

extension FieldValue {
    /// The elements of a set in the order in which comparisons take them, so that IN, which
    /// compares two lists element by element, has the same answer in every process.
    package static func realmElements(of values: Set<FieldValue>) -> [FieldValue] {
        values.inOrder
    }

    /// The places that GEOWITHIN looks at where any of them will do: a list may be two coordinates,
    /// and may be of places.
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
    /// Circles in one of which each place lies that the shape of GEOWITHIN has inside.
    ///
    /// `nil` for what is no shape yet, for a box wider than half the Earth, and for a polygon that
    /// takes nearly as much.
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
            // Of so narrow a box nothing is farther away than the corners; a metre for rounding.
            let farthest = max(centre.metres(to: southWest), centre.metres(to: northWest))
            return [(centre, farthest + 1)]
        case .polygon(let outer, _):
            guard let (centre, radius) = outer.circle, let opposite = centre.opposite else {
                return nil
            }
            let metres = radius * Functions.earthRadius + 1
            // What lies inside one whose edges cross may be at the other side of the Earth.
            return [(centre, metres), (opposite, metres)]
        }
    }
}
