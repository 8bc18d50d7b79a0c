import RelayModel

/// The database that the relay follows for a source, with the options of `belfry follow postgres`.
///
/// It contains no password. libpq looks for that on the relay's machine.
package struct FollowDefinition: Sendable, Hashable {
    /// The URL of the database, in libpq's form.
    package var url: String
    /// The publication, which determines the followed tables.
    package var publication = "belfry"
    /// The replication slot, which remembers how far the log was followed.
    package var slot = "belfry"
    /// Whether an outbox is read instead of a slot.
    package var readsOutbox = false
    /// Whether a missing publication and slot, or a missing outbox, are created.
    package var makes = false
    /// The tables of a created publication or outbox, as `schema.table`.
    package var tables: [String] = []
    /// Whether a new slot or outbox begins with the existing rows.
    package var takesSnapshot = true
    /// How much log the server may retain for the slot before the relay warns, in megabytes.
    package var warnMegabytes: Int64 = 1024
    /// The identity of the store that follows the database.
    ///
    /// Another identity means that a copy of that store was made.
    package var store: String?

    private static let members = [
        "url", "publication", "slot", "outbox", "make", "tables", "snapshot", "warnMegabytes",
        "store",
    ]
    /// The maximum size of a text, in bytes; enough for a URL with several hosts.
    private static let maximumText = 2048
    private static let maximumTables = 1000

    /// Parses the JSON form.
    ///
    /// - Throws: ``JSONContractError`` with the invalid member. Whether the URL is usable shows
    ///   only when the relay connects.
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
            throw reader.failure("tables", "at most \(Self.maximumTables) are allowed")
        }
        for (index, table) in tables.enumerated() {
            _ = try Self.text("tables[\(index)]", table, reader)
        }
        guard !readsOutbox || !makes || !tables.isEmpty else {
            throw reader.failure("tables", "is required when an outbox is made")
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

    /// Returns whether `name` is valid for a slot (PostgreSQL: lower-case letters, digits and
    /// underscores).
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
