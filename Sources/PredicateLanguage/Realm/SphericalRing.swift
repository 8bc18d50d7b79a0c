import RelayModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A point on the unit sphere.
struct SphericalPoint {
    let x: Double
    let y: Double
    let z: Double

    init(x: Double, y: Double, z: Double) {
        (self.x, self.y, self.z) = (x, y, z)
    }

    init(_ place: Location) {
        let latitude = place.latitude * .pi / 180
        let longitude = place.longitude * .pi / 180
        self.init(
            x: cos(latitude) * cos(longitude), y: cos(latitude) * sin(longitude),
            z: sin(latitude))
    }

    /// Returns the angle to another point, in radians.
    ///
    /// It is accurate for close points too.
    func angle(to other: SphericalPoint) -> Double {
        let cross = self.cross(other)
        return atan2(cross.length, dot(other))
    }

    var length: Double { (x * x + y * y + z * z).squareRoot() }

    func dot(_ other: SphericalPoint) -> Double {
        x * other.x + y * other.y + z * other.z
    }

    func cross(_ other: SphericalPoint) -> SphericalPoint {
        SphericalPoint(
            x: y * other.z - z * other.y, y: z * other.x - x * other.z,
            z: x * other.y - y * other.x)
    }

    /// Returns the angle at this point from `first` to `second`, counterclockwise, in (-pi, pi].
    func turn(from first: SphericalPoint, to second: SphericalPoint) -> Double {
        let normal = dot(first.cross(second))
        let along = first.dot(second) - dot(first) * dot(second)
        return atan2(normal, along)
    }
}

private extension SphericalPoint {
    /// The reference direction at a point, which is the one that S2 uses (`S2::Ortho`).
    ///
    /// Realm's geography is based on S2.
    var reference: SphericalPoint {
        let (x, y, z) = (abs(self.x), abs(self.y), abs(self.z))
        var axis = (x: 0.012, y: 0.0053, z: 0.00457)
        if x > y, x > z {
            axis.z = 1
        } else if x <= y, y > z {
            axis.x = 1
        } else {
            axis.y = 1
        }
        return cross(SphericalPoint(x: axis.x, y: axis.y, z: axis.z))
    }
}

/// A closed line of great-circle edges.
///
/// Its inside is the smaller of the two areas that it separates.
struct SphericalRing {
    private let corners: [SphericalPoint]
    /// 1 if the inside is to the left of the edges, -1 if it is to the right.
    private let orientation: Double

    init(_ places: some Sequence<Location>) {
        corners = places.map(SphericalPoint.init)
        orientation = Self.signedArea(corners) < 0 ? -1 : 1
    }

    /// Returns whether a point lies inside.
    ///
    /// Some of the points on an edge and some corners count as inside.
    ///
    /// Seen from a point inside, the edges make one full turn: counterclockwise if the inside is to
    /// the left, else clockwise. Seen from the antipode of such a point, they turn the other way.
    ///
    /// - Complexity: O(*n*) in the number of corners.
    func contains(_ point: SphericalPoint) -> Bool {
        var turned = 0.0
        for (index, corner) in corners.enumerated() {
            if corner.angle(to: point) < 1e-15 { return ownsCorner(at: index) }
            turned += point.turn(from: corner, to: corners[(index + 1) % corners.count])
        }
        return turned * orientation > .pi
    }

    /// Returns whether a corner counts as inside: it does if its reference direction points to the
    /// inside.
    ///
    /// So if several shapes meet at a corner without overlapping, exactly one of them contains it.
    private func ownsCorner(at index: Int) -> Bool {
        let corner = corners[index]
        let next = corners[(index + 1) % corners.count]
        let previous = corners[(index + corners.count - 1) % corners.count]
        func angle(to direction: SphericalPoint) -> Double {
            let turn = corner.turn(from: next, to: direction)
            return turn < 0 ? turn + 2 * .pi : turn
        }
        let isLeft = angle(to: corner.reference) < angle(to: previous)
        return isLeft == (orientation > 0)
    }

    /// A circle that contains all corners and edges, or `nil` if it would be nearly a hemisphere.
    ///
    /// Seen from a point that lies neither in the circle nor opposite it, the edges make no full
    /// turn.
    var circle: (centre: Location, radius: Double)? {
        let middle = SphericalPoint(
            x: corners.reduce(0) { $0 + $1.x }, y: corners.reduce(0) { $0 + $1.y },
            z: corners.reduce(0) { $0 + $1.z })
        let radius = corners.reduce(0) { max($0, middle.angle(to: $1)) }
        guard middle.length > 1e-6, radius < Self.widest else { return nil }
        let flat = (middle.x * middle.x + middle.y * middle.y).squareRoot()
        return Location(
            latitude: atan2(middle.z, flat) * 180 / .pi,
            longitude: atan2(middle.y, middle.x) * 180 / .pi
        ).map { ($0, radius) }
    }

    /// 80 degrees.
    private static let widest = 80 * Double.pi / 180

    /// Returns the area to the left of the line, reduced to at most a hemisphere in either
    /// direction.
    private static func signedArea(_ corners: [SphericalPoint]) -> Double {
        guard let first = corners.first else { return 0 }
        var area = 0.0
        for index in corners.indices.dropFirst().dropLast() {
            area += excess(first, corners[index], corners[index + 1])
        }
        let whole = 4 * Double.pi
        area = area.truncatingRemainder(dividingBy: whole)
        if area > whole / 2 { area -= whole }
        if area < -whole / 2 { area += whole }
        return area
    }

    /// Returns the area of a triangle.
    ///
    /// It is positive if the corners are counterclockwise (Van Oosterom and Strackee 1983).
    private static func excess(
        _ a: SphericalPoint, _ b: SphericalPoint, _ c: SphericalPoint
    ) -> Double {
        2 * atan2(a.dot(b.cross(c)), 1 + a.dot(b) + b.dot(c) + c.dot(a))
    }
}

extension Location {
    /// The location on the opposite side of the Earth.
    var opposite: Location? {
        Location(latitude: -latitude, longitude: longitude > 0 ? longitude - 180 : longitude + 180)
    }
}
