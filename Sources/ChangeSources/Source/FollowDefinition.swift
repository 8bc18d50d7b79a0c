import RelayModel

/// Which database a source follows by itself, and how: what `belfry follow postgres` is told.
///
/// It has no password: that comes from where libpq looks for it on the relay's machine.
package struct FollowDefinition: Sendable, Hashable {
    /// The database, as libpq reads it.
    package var url: String
    /// The publication, which says what is followed.
    package var publication = "belfry"
    /// The replication slot, which remembers how far it was followed.
    package var slot = "belfry"
    /// Whether an outbox is read in the place of a slot.
    package var readsOutbox = false
    /// Whether publication and slot, or the outbox, are made where they are missing.
    package var makes = false
    /// The tables of what is made, as `schema.table`.
    package var tables: [String] = []
    /// Whether a slot or outbox that is made begins with the rows as they are.
    package var takesSnapshot = true
    /// How much the server may keep for the slot before it is warned of, in megabytes.
    package var warnMegabytes: Int64 = 1024
    /// The identity of the store that follows it: another one was made of a copy of that.
    package var store: String?

    private static let members = [
        "url", "publication", "slot", "outbox", "make", "tables", "snapshot", "warnMegabytes",
        "store",
    ]
    /// The longest text here, in bytes: an URL with several hosts.
    private static let maximumText = 2048
    private static let maximumTables = 1000

    /// Reads the JSON form.
    ///
    /// - Throws: ``JSONContractError`` that names the member at fault. Whether the URL can be used
    ///   is known only to what connects.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(Self.members)
        url = try Self.text("url", try reader.require("url", try reader.string("url")), reader)
        if let name = try reader.string("publication") {
            guard (1...63).contains(name.utf8.count) else {
                throw reader.failure("publication", "1 to 63 bytes are allowed")
            }
            publication = name
        }
        if let name = try reader.string("slot") {
            guard Self.isSlotName(name) else {
                throw reader.failure("slot", "1 to 63 of a–z, 0–9 and _ are allowed")
            }
            slot = name
        }
        readsOutbox = try reader.bool("outbox") ?? false
        makes = try reader.bool("make") ?? false
        tables = try reader.strings("tables") ?? []
        guard tables.count <= Self.maximumTables else {
            throw reader.failure("tables", "\(Self.maximumTables) are allowed")
        }
        for (index, table) in tables.enumerated() {
            _ = try Self.text("tables[\(index)]", table, reader)
        }
        guard !readsOutbox || !makes || !tables.isEmpty else {
            throw reader.failure("tables", "an outbox that is made needs its tables named")
        }
        takesSnapshot = try reader.bool("snapshot") ?? true
        warnMegabytes = try reader.integer("warnMegabytes") ?? 1024
        guard (1..<1 << 40).contains(warnMegabytes) else {
            throw reader.failure("warnMegabytes", "must be 1 to \((1 << 40) - 1)")
        }
        if let identity = try reader.string("store") {
            store = try Self.text("store", identity, reader)
        }
    }

    private static func text(
        _ name: String, _ text: String, _ reader: JSONReader
    ) throws(JSONContractError) -> String {
        guard (1...maximumText).contains(text.utf8.count), !text.utf8.contains(0) else {
            throw reader.failure(name, "1 to \(maximumText) bytes are allowed")
        }
        return text
    }

    /// Whether `name` can be a slot's (PostgreSQL: lower-case letters, digits and underscores).
    package static func isSlotName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
            }
    }

    /// The JSON form.
    var json: JSONObject {
        var object: JSONObject = [
            "url": .string(url), "publication": .string(publication), "slot": .string(slot),
            "outbox": .bool(readsOutbox), "make": .bool(makes),
            "tables": .array(tables.map { .string($0) }), "snapshot": .bool(takesSnapshot),
            "warnMegabytes": .integer(warnMegabytes),
        ]
        object["store"] = store.map { .string($0) }
        return object
    }
}
