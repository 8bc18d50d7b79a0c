package import PostgresLink

/// The database to follow, and how to follow it.
package struct FollowSettings: Sendable, Hashable {
    /// How changes are read.
    package enum Way: Sendable, Hashable {
        /// A replication slot.
        case slot
        /// A table that triggers fill.
        case outbox
    }

    /// The database, and the role that connects.
    package var target: PostgresTarget
    /// How changes are read.
    package var way = Way.slot
    /// The name of the publication, which determines the followed tables; unused with an outbox.
    package var publication = "belfry"
    /// The name of the replication slot, which remembers how far it was followed; unused with an
    /// outbox.
    package var slot = "belfry"
    /// Whether a missing publication and slot, or a missing outbox, are created.
    package var makes = false
    /// The tables of what is created, as `schema.table`.
    ///
    /// An empty list means all tables of a publication. An outbox needs named tables.
    package var tables: [String] = []
    /// Whether a slot that is created begins with a snapshot of the existing rows.
    package var takesSnapshot = true
    /// Whether a problem that needs an operator ends the following, if it has not begun yet.
    package var endsBeforeItBegan = false
    /// How many bytes of its log the server may keep for the slot before a warning.
    package var retainedWarning: UInt64 = 1024 * 1024 * 1024
    /// What the store contains, if it was restored from a copy of the store that followed before.
    package var restored: RestoredHolding?
    /// The file of certificate authorities that sign servers' certificates.
    package var authorities: String?

    /// Creates settings that follow a database by the slot and the publication named `belfry`.
    package init(_ target: PostgresTarget) {
        self.target = target
    }
}

/// What a restored store contains of a database.
package struct RestoredHolding: Sendable, Hashable {
    /// The version of the last change; `nil` if there is none.
    package var last: Int64?

    package init(last: Int64?) {
        self.last = last
    }

    /// Returns the problem with a slot that is confirmed up to `confirmed`; `nil` if there is none.
    ///
    /// The log between the last change and that position may contain changes, and the slot no
    /// longer delivers it.
    func problem(
        _ slot: String, confirmed: PostgresPosition?, on timelines: Timelines
    ) -> FollowProblem? {
        guard let confirmed, timelines.version(of: confirmed) > last ?? 0 else { return nil }
        let held = last.map {
            "the last change that it contains is of "
                + (timelines.place(inVersion: $0)?.description ?? "another server")
        }
        return .storeRestored(
            "\(held ?? "it contains no change of this server"), but the slot \(slot) is confirmed "
                + "up to \(confirmed)")
    }
}
