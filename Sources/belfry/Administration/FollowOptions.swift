import ArgumentParser
import RelayModel

/// The options of `belfry sources set` for a database that the relay follows itself.
struct FollowOptions: ParsableArguments {
    @Option(
        name: .customLong("follow"),
        help: """
            The PostgreSQL database, as postgresql://ROLE@HOST:PORT/DATABASE, without a password. \
            "off" ends the following.
            """)
    var url: String?
    @Option(help: "The publication, which says what is followed (default: belfry).")
    var publication: String?
    @Option(help: "The replication slot (default: belfry).")
    var slot: String?
    @Flag(inversion: .prefixedNo, help: "Read an outbox instead of a slot.")
    var outbox: Bool?
    @Flag(
        inversion: .prefixedNo,
        help: "Make the publication and the slot, or the outbox, where they are missing.")
    var make: Bool?
    @Option(
        parsing: .singleValue,
        help: "A table of the publication or outbox to make, such as public.orders; repeatable.")
    var tables: [String] = []
    @Flag(
        inversion: .prefixedNo,
        help: "Begin with the rows that are there already (default: with them).")
    var snapshot: Bool?
    @Option(help: "Warn as soon as the server keeps this many megabytes for it (default: 1024).")
    var warnMegabytes: Int64?

    func validate() throws {
        let others: [Any?] = [publication, slot, outbox, make, snapshot, warnMegabytes]
        guard url == "off", others.contains(where: { $0 != nil }) || !tables.isEmpty else { return }
        throw ValidationError("--follow off ends the following: leave out its other options")
    }

    /// Whether any of the options is given.
    var isGiven: Bool { definition != nil }

    /// The preset of a source that follows a database; `nil` if none is to be followed.
    var preset: String? { url == nil || url == "off" ? nil : "postgres" }

    /// The member `follow` of a source, with the given options; `nil` if there are none.
    var definition: JSONValue? {
        if url == "off" { return .null }
        var follow: JSONObject = [:]
        follow["url"] = url.map { .string($0) }
        follow["publication"] = publication.map { .string($0) }
        follow["slot"] = slot.map { .string($0) }
        follow["outbox"] = outbox.map { .bool($0) }
        follow["make"] = make.map { .bool($0) }
        if !tables.isEmpty { follow["tables"] = .array(tables.map { .string($0) }) }
        follow["snapshot"] = snapshot.map { .bool($0) }
        follow["warnMegabytes"] = warnMegabytes.map { .integer($0) }
        return follow.members.isEmpty ? nil : .object(follow)
    }
}
