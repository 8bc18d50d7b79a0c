import RelayModel

/// MongoDB change events, as an Atlas function or a small program posts them, or wrapped by
/// EventBridge under `detail`.
enum MongoDBReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let outer = try item.reader()
        let wrapped = outer.object["operationType"] == nil ? try outer.reader("detail") : nil
        let reader = wrapped ?? outer
        let word = try reader.require("operationType", try reader.string("operationType"))
        let operation: ChangeOperation
        switch word {
        case "insert": operation = .create
        case "update", "replace": operation = .update
        case "delete": operation = .delete
        case "drop", "rename", "dropDatabase", "invalidate", "create", "createIndexes",
            "dropIndexes", "modify", "shardCollection", "reshardCollection",
            "refineCollectionShardKey":
            return .ignored("\(word) does not change a document")
        default:
            throw reader.failure(
                "operationType",
                "\"\(word.prefix(64))\" is unknown; allowed are insert, update, replace, delete")
        }
        let namespace = try reader.require("ns", try reader.reader("ns"))
        let collection = try namespace.require("coll", try namespace.string("coll"))
        var change = ReportedChange(
            operation,
            of: ReportedTable(database: try namespace.string("db"), name: collection))
        try readImages(reader, into: &change)
        try readOrder(reader, into: &change)
        return .changes([change])
    }

    private static func readImages(
        _ reader: JSONReader, into change: inout ReportedChange
    ) throws(JSONContractError) {
        let key = try reader.reader("documentKey").map { ExtendedJSON.fields($0.object) } ?? [:]
        if change.operation != .create, let before = try reader.reader("fullDocumentBeforeChange") {
            change.before = ReportedImage(
                fields: ExtendedJSON.fields(before.object), completeness: .full,
                path: before.path)
        } else if change.operation == .delete {
            change.before = ReportedImage(
                fields: key, completeness: .partial, path: reader.path(of: "documentKey"))
        }
        let update = try reader.reader("updateDescription")
        if change.operation == .update { change.changedKeys = try changedKeys(update) }
        guard change.operation != .delete else { return }
        if let after = try reader.reader("fullDocument") {
            change.after = ReportedImage(
                fields: ExtendedJSON.fields(after.object), completeness: .full, path: after.path)
            change.isLookedUp = update != nil
        } else if let update {
            var fields = key
            try apply(update, to: &fields)
            change.after = ReportedImage(
                fields: fields, completeness: .partial, path: update.path)
        } else {
            throw reader.failure(
                "fullDocument", "is required; an update may have updateDescription instead")
        }
    }

    /// Returns the top-level fields that an update touched.
    ///
    /// A dotted name is a path within a field.
    private static func changedKeys(_ update: JSONReader?) throws(JSONContractError) -> [String]? {
        guard let update else { return nil }
        var names = try update.reader("updatedFields")?.object.members.map(\.name) ?? []
        names += try update.strings("removedFields") ?? []
        for case .object(let array) in try update.array("truncatedArrays") ?? [] {
            if case .string(let name)? = array["field"] { names.append(name) }
        }
        return Set(names.map { DottedName($0).field }).sorted()
    }

    /// Applies the fields whose whole values are known.
    ///
    /// Partially changed fields stay unknown.
    private static func apply(
        _ update: JSONReader, to fields: inout RecordFields
    ) throws(JSONContractError) {
        for member in try update.reader("updatedFields")?.object.members ?? []
        where !DottedName(member.name).isPart {
            fields[member.name] = ExtendedJSON.value(member.value)
        }
        for name in try update.strings("removedFields") ?? [] where !DottedName(name).isPart {
            fields[name] = .null
        }
    }

    private static func readOrder(
        _ reader: JSONReader, into change: inout ReportedChange
    ) throws(JSONContractError) {
        if let time = clusterTime(reader.value("clusterTime")) {
            // The seconds, and the number of the operation within that second.
            change.version = time.seconds << 32 | time.increment
            change.occurredAt = Timestamp(seconds: time.seconds)
        }
        if case .timestamp(let moment)? = reader.value("wallTime").map(ExtendedJSON.value) {
            change.occurredAt = moment
        }
        switch reader.value("_id") {
        case .object(let token)?:
            let data = token["_data"].map { FieldValue(plain: $0).nameText ?? $0.text }
            change.key = (.position, data ?? JSONValue.object(token).text)
        case .string(let token)? where !token.isEmpty: change.key = (.position, token)
        default: break
        }
    }

    private static func clusterTime(_ json: JSONValue?) -> (seconds: Int64, increment: Int64)? {
        guard case .object(let object)? = json, case .object(let parts)? = object["$timestamp"],
            case .integer(let seconds)? = parts["t"], case .integer(let increment)? = parts["i"],
            (0...0x7FFF_FFFF).contains(seconds), (0...0xFFFF_FFFF).contains(increment)
        else { return nil }
        return (seconds, increment)
    }
}
