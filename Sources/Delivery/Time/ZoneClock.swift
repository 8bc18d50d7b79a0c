import FoundationEssentials
package import RelayModel

/// The offsets of time zones from UTC, by name, from the system's database (Debian's package
/// `tzdata`).
///
/// The system keeps that up to date while a relay stays the same.
package struct ZoneClock: Sendable {
    private var zones: [String: ZoneRules] = [:]
    /// The folder of the database.
    private static let folder = "/usr/share/zoneinfo"
    /// The maximum size of a file.
    ///
    /// The largest one has some thousands of bytes.
    private static let mostBytes = 65_536

    /// The maximum number of cached zones.
    ///
    /// The IANA database has about six hundred.
    private static let mostZones = 1024
    /// The maximum length of a name.
    ///
    /// The longest one has 32 bytes.
    private static let longestName = 64

    /// Creates a clock that has read no zone yet.
    package init() {}

    /// Returns whether there is a zone with this name.
    package static func has(_ name: String) -> Bool { zone(name) != nil }

    /// Returns how many seconds the clocks of a zone are ahead of UTC at `moment`, or 0 if the zone
    /// no longer exists.
    package mutating func offset(of name: String, at moment: Timestamp) -> Int64 {
        if zones[name] == nil {
            if zones.count >= Self.mostZones { zones.removeAll() }
            zones[name] = Self.zone(name)
        }
        return zones[name]?.offset(at: moment.seconds) ?? 0
    }

    /// Reads a zone.
    ///
    /// Only names of the database are accepted, so that no name is taken as a path, a rule or an
    /// abbreviation.
    private static func zone(_ name: String) -> ZoneRules? {
        let isName = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
        guard isName, (3...longestName).contains(name.utf8.count),
            name == "UTC" || name.contains("/")
        else { return nil }
        guard let data = FileManager.default.contents(atPath: "\(folder)/\(name)"),
            data.count <= mostBytes
        else { return nil }
        return ZoneRules(Array(data))
    }
}
