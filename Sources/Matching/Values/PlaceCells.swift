import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// The cells of a grid of degrees that a circle on the Earth touches, at a level where they are
/// few.
///
/// At level n the world has 2^n rows and 2^(n+1) columns.
struct PlaceCells {
    /// The level.
    let level: Int
    /// The cells, with the row in the upper half and the column in the lower.
    private(set) var cells: [UInt64] = []

    static let deepest = 24
    /// The maximum number of cells for one circle.
    static let most = 6
    /// The margin around the circle's box, in radians or degrees; it is far greater than rounding
    /// errors.
    private static let slack = 1e-9

    /// Creates the cells of a circle; returns `nil` if no location is inside.
    init?(_ centre: Location, metres: Double) {
        guard metres >= 0 else { return nil }
        let angle = metres / 6_371_008.8 * (1 + 1e-9) + Self.slack
        let degrees = angle * 180 / .pi
        let south = max(centre.latitude - degrees, -90)
        let north = min(centre.latitude + degrees, 90)
        var half = 180.0
        if south > -90, north < 90, angle < .pi / 2 {
            let ratio = sin(angle) / cos(centre.latitude * .pi / 180)
            if ratio < 1 { half = asin(ratio) * 180 / .pi + Self.slack }
        }
        for level in stride(from: Self.deepest, through: 0, by: -1) {
            let cells = Self.cells(south, north, centre.longitude, half, level)
            guard cells.count <= Self.most else { continue }
            self.level = level
            self.cells = cells
            return
        }
        return nil
    }

    /// Returns the cells of a box, or an array with more than ``most`` placeholders if there would
    /// be too many.
    private static func cells(
        _ south: Double, _ north: Double, _ longitude: Double, _ half: Double, _ level: Int
    ) -> [UInt64] {
        let columns = 2 << level
        let (firstRow, lastRow) = (row(south, level), row(north, level))
        let width = 360 / Double(columns)
        let first = Int(((longitude - half + 180) / width).rounded(.down))
        let last = Int(((longitude + half + 180) / width).rounded(.down))
        let across = min(last - first + 1, columns)
        guard (lastRow - firstRow + 1) * across <= most || level == 0 else {
            return Array(repeating: 0, count: most + 1)
        }
        var cells: [UInt64] = []
        for row in firstRow...lastRow {
            for column in first..<first + across {
                let wrapped = ((column % columns) + columns) % columns
                cells.append(UInt64(row) << 32 | UInt64(wrapped))
            }
        }
        return cells
    }

    /// Returns the cell of a location.
    static func cell(_ latitude: Double, _ longitude: Double, level: Int) -> UInt64 {
        let columns = 2 << level
        let column = Int(((longitude + 180) / 360 * Double(columns)).rounded(.down))
        return UInt64(row(latitude, level)) << 32 | UInt64(column % columns)
    }

    private static func row(_ latitude: Double, _ level: Int) -> Int {
        let rows = 1 << level
        return min(Int(((latitude + 90) / 180 * Double(rows)).rounded(.down)), rows - 1)
    }

    static func append(_ cell: UInt64, level: Int, to bytes: inout GrowingBuffer<UInt8>) {
        for shift in stride(from: 0, to: 64, by: 8) as StrideTo<UInt64> {
            bytes.append(UInt8(truncatingIfNeeded: cell >> shift))
        }
        bytes.append(UInt8(level))
    }
}
