import FoundationEssentials
package import RelayModel

/// How far the clocks of time zones are ahead of UTC, by the zones' names, as the system's database
/// has them (Debian's package `tzdata`), which is brought up to date while a relay stays as it is.
package struct ZoneClock: Sendable {
    private var zones: [String: ZoneRules] = [:]
    /// Where the system has the database.
    private static let folder = "/usr/share/zoneinfo"
    /// The largest file has some thousands.
    private static let mostBytes = 65_536

    /// The IANA has about six hundred.
    private static let mostZones = 1024
    /// The longest name has 32 bytes.
    private static let longestName = 64

    /// Knows no zone yet.
    package init() {}

    /// Whether there is a zone of this name.
    package static func has(_ name: String) -> Bool { zone(name) != nil }

    /// How many seconds the clocks of a zone are ahead of UTC at `moment`; 0 if there is no such
    /// zone any more.
    package mutating func offset(of name: String, at moment: Timestamp) -> Int64 {
        if zones[name] == nil {
            if zones.count >= Self.mostZones { zones.removeAll() }
            zones[name] = Self.zone(name)
        }
        return zones[name]?.offset(at: moment.seconds) ?? 0
    }

    /// Names of the database alone, which nothing reads as a path, a rule or an abbreviation.
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
