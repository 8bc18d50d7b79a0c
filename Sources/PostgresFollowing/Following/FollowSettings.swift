package import PostgresLink

/// Which database is followed, and how.
package struct FollowSettings: Sendable, Hashable {
    package var target: PostgresTarget
    package var publication = "belfry"
    package var slot = "belfry"
    /// Whether publication and slot are made where they are missing.
    package var makes = false
    /// The tables of a publication that is made, as `schema.table`; all tables if empty.
    package var tables: [String] = []
    /// Whether a slot that is made begins with the rows as they are.
    package var takesSnapshot = true
    /// Whether a problem that stays until somebody does something ends the following before it has
    /// begun.
    package var endsBeforeItBegan = false
    /// How much of its log the server may keep for the slot before it is warned of.
    package var retainedWarning: UInt64 = 1024 * 1024 * 1024
    /// The file with the authorities of servers' certificates.
    package var authorities: String?

    package init(_ target: PostgresTarget) {
        self.target = target
    }

    /// Whether `name` can be a slot's (PostgreSQL: lower-case letters, digits and underscores).
    package static func isSlotName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
            }
    }
}
