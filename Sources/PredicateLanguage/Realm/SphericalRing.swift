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

    /// The angle between two points, in radians; exact for near points too.
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

    /// The angle at this point from `first` to `second`, counterclockwise, in (-pi, pi].
    func turn(from first: SphericalPoint, to second: SphericalPoint) -> Double {
        let normal = dot(first.cross(second))
        let along = first.dot(second) - dot(first) * dot(second)
        return atan2(normal, along)
    }
}

private extension SphericalPoint {
    /// The direction that S2, by which Realm goes, takes at a point where it needs any
    /// (`S2::Ortho`).
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

/// A closed line of great-circle edges; its inside is the smaller of the two areas beside it.
struct SphericalRing {
    private let corners: [SphericalPoint]
    /// 1 if the inside lies to the left, -1 if to the right.
    private let orientation: Double

    init(_ places: some Sequence<Location>) {
        corners = places.map(SphericalPoint.init)
        orientation = Self.signedArea(corners) < 0 ? -1 : 1
    }

    /// Whether a point lies inside; of the points on an edge some do, corners among them.
    ///
    /// The edges are seen to turn once around a point inside, counterclockwise when the inside is
    /// to the left; they turn the other way around the antipode of a point inside.
    ///
    /// - Complexity: O(*n*) in the corners.
    func contains(_ point: SphericalPoint) -> Bool {
        var turned = 0.0
        for (index, corner) in corners.enumerated() {
            if corner.angle(to: point) < 1e-15 { return ownsCorner(at: index) }
            turned += point.turn(from: corner, to: corners[(index + 1) % corners.count])
        }
        return turned * orientation > .pi
    }

    /// Whether a corner lies inside, as it does where the point's own direction goes inwards.
    ///
    /// So of the shapes around a corner, none of which is over another, one has it.
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

    /// A circle around all corners, which all edges lie in as well; `nil` if it is nearly a
    /// hemisphere.
    ///
    /// Around a point that lies neither in it nor opposite of it the edges do not turn.
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

    /// The area to the left of the line, less a hemisphere if it is more than one.
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

    /// The area of a triangle, positive if its corners run counterclockwise (Van Oosterom and
    /// Strackee 1983).
    private static func excess(
        _ a: SphericalPoint, _ b: SphericalPoint, _ c: SphericalPoint
    ) -> Double {
        2 * atan2(a.dot(b.cross(c)), 1 + a.dot(b) + b.dot(c) + c.dot(a))
    }
}

extension Location {
    /// The place at the other side of the Earth.
    var opposite: Location? {
        Location(latitude: -latitude, longitude: longitude > 0 ? longitude - 180 : longitude + 180)
    }
}
