package import PostgresLink

/// Which database is followed, and how.
package struct FollowSettings: Sendable, Hashable {
    /// How changes are read.
    package enum Way: Sendable, Hashable {
        /// A replication slot.
        case slot
        /// A table that triggers fill.
        case outbox
    }

    /// The database, and as whom it is reached.
    package var target: PostgresTarget
    /// How changes are read.
    package var way = Way.slot
    /// The publication, which says what is followed; not read of an outbox.
    package var publication = "belfry"
    /// The replication slot, which remembers how far it was followed; not read of an outbox.
    package var slot = "belfry"
    /// Whether publication and slot, or the outbox, are made where they are missing.
    package var makes = false
    /// The tables of what is made, as `schema.table`.
    ///
    /// None stands for all tables, of a publication; of an outbox they must be named.
    package var tables: [String] = []
    /// Whether a slot that is made begins with the rows as they are.
    package var takesSnapshot = true
    /// Whether a problem that stays until somebody does something ends the following before it has
    /// begun.
    package var endsBeforeItBegan = false
    /// How many bytes of its log the server may keep for the slot before it is warned of.
    package var retainedWarning: UInt64 = 1024 * 1024 * 1024
    /// What the store holds, where it was made of a copy of the one that followed before.
    package var restored: RestoredHolding?
    /// The file with the authorities of servers' certificates.
    package var authorities: String?

    /// Follows a database by the slot and the publication that are called `belfry`.
    package init(_ target: PostgresTarget) {
        self.target = target
    }
}

/// What a store that was restored holds of a database.
package struct RestoredHolding: Sendable, Hashable {
    /// The version of the last change; `nil` where none is found.
    package var last: Int64?

    package init(last: Int64?) {
        self.last = last
    }

    /// What is wrong with a slot that is confirmed up to `confirmed`.
    ///
    /// What ends behind the last change may hold changes or not: nobody knows any more.
    func problem(
        _ slot: String, confirmed: PostgresPosition?, on timelines: Timelines
    ) -> FollowProblem? {
        guard let confirmed, timelines.version(of: confirmed) > last ?? 0 else { return nil }
        let held = last.map {
            "the last change that it holds is of "
                + (timelines.place(inVersion: $0)?.description ?? "another server")
        }
        return .storeRestored(
            "\(held ?? "it holds no change of it"), and the slot \(slot) is confirmed up to "
                + "\(confirmed)")
    }
}
