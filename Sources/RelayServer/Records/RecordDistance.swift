import FoundationEssentials
import Glibc
import RelayModel

extension RecordOrder {
    /// Returns the distance of two locations in metres, on a sphere of the Earth's mean radius.
    static func distance(_ first: Location, _ second: Location) -> Double {
        func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
        let latitudes = (radians(first.latitude), radians(second.latitude))
        let half = sin((latitudes.1 - latitudes.0) / 2)
        let other = sin(radians(second.longitude - first.longitude) / 2)
        let chord = half * half + cos(latitudes.0) * cos(latitudes.1) * other * other
        return 2 * 6_371_008.8 * asin(min(1, chord.squareRoot()))
    }
}
