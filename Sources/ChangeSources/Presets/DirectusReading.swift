import RelayModel

/// Directus flows with the template of `docs/change-sources.md`.
///
/// One request may name several records. It carries only the fields that changed.
enum DirectusReading {
    private static let members = [
        "event", "collection", "key", "keys", "payload", "accountability",
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let (reader, accountability) = try parts(of: item)
        let event = try reader.require("event", try reader.string("event"))
        guard let operation = operation(event) else {
            return .ignored("the event \"\(event.prefix(64))\" does not change an item")
        }
        let name = try reader.require("collection", try reader.string("collection"))
        let payload = value("payload", reader)
        let keys = names(in: value("key", reader)) + names(in: value("keys", reader))
        let named = keys.isEmpty && operation == .delete ? names(in: payload) : keys
        guard !named.isEmpty else { throw reader.failure("keys", "must name at least one record") }
        guard named.count <= Limits.maximumChangesPerRequest else {
            throw reader.failure(
                "keys", "\(named.count) keys; \(Limits.maximumChangesPerRequest) are allowed")
        }
        if operation != .delete { try check(payload, for: named.count, reader) }
        let user = user(in: accountability)
        let mapping = item.source.mapping
        let column = (mapping.keys[name] ?? mapping.key)?.first ?? "id"
        let changed = operation == .update ? changedKeys(payload) : nil
        var changes: [ReportedChange] = []
        for key in unique(named) {
            var change = ReportedChange(operation, of: ReportedTable(name: name))
            change.recordName = key.nameText
            let path = reader.path(of: "payload")
            if operation == .delete {
                change.before = ReportedImage(
                    fields: [column: key], completeness: .partial, path: path)
            } else {
                change.after = try after(payload, of: name, key: key, in: column, path: path)
                change.changedKeys = changed
            }
            change.userID = user
            changes.append(change)
        }
        return .changes(changes)
    }

    /// The maximum size of all changes of one request, in bytes.
    ///
    /// Each item gets the whole payload.
    private static let mostBytes = 64 * 1024 * 1024

    private static func check(
        _ payload: JSONValue, for count: Int, _ reader: JSONReader
    ) throws(JSONContractError) {
        // Otherwise each item's fields would be built before the first is refused: half a gigabyte.
        if case .object(let object) = payload,
            object.members.count > Limits.maximumFieldsPerRecord
        {
            throw reader.failure(
                "payload",
                "\(object.members.count) fields; \(Limits.maximumFieldsPerRecord) are allowed")
        }
        let bytes = payload.utf8.count
        guard count * bytes > mostBytes else { return }
        throw reader.failure(
            "keys",
            "\(count) keys with a payload of \(bytes) bytes each; \(mostBytes) bytes are allowed "
                + "in total")
    }

    /// Returns the operation of an event on a collection's items; `nil` if it is none.
    private static func operation(_ event: String) -> ChangeOperation? {
        let parts = event.split(separator: ".")
        // These events are about the schema of the collection that they name.
        if parts.count == 2, ["collections", "fields", "relations"].contains(parts[0]) {
            return nil
        }
        switch parts.last {
        // A file only ever causes `files.upload`, whether it is new or replaces another one.
        case "create", "upload": return .create
        case "update": return .update
        case "delete": return .delete
        default: return nil
        }
    }

    /// Returns the flow's trigger and its accountability.
    ///
    /// A template sends both as members, or the members of the trigger itself.
    private static func parts(
        of item: SourceItem
    ) throws(JSONContractError) -> (trigger: JSONReader, accountability: JSONValue) {
        let outer = try item.reader()
        let accountability = value("accountability", outer)
        guard let trigger = try outer.reader("trigger") else {
            // Events of other kinds have other members.
            if let event = try outer.string("event"), operation(event) != nil {
                try outer.allowOnly(members)
            }
            return (outer, accountability)
        }
        try outer.allowOnly(["trigger", "accountability"])
        return (trigger, accountability)
    }

    /// Returns a member.
    ///
    /// Depending on the version, a template inside quotes yields text or the value itself.
    private static func value(_ name: String, _ reader: JSONReader) -> JSONValue {
        guard let json = reader.value(name) else { return .null }
        guard case .string(let text) = json, let first = text.utf8.first,
            "[{".utf8.contains(first), let parsed = try? JSONValue(parsing: text)
        else {
            if case .string(let text) = json, ["", "undefined", "null"].contains(text) {
                return .null
            }
            return json
        }
        return parsed
    }

    private static func names(in json: JSONValue) -> [FieldValue] {
        switch json {
        case .string, .integer: [FieldValue(plain: json)]
        case .array(let elements):
            elements.compactMap { element in
                switch element {
                case .string, .integer: FieldValue(plain: element)
                default: nil
                }
            }
        default: []
        }
    }

    private static func unique(_ names: [FieldValue]) -> [FieldValue] {
        // By bytes, because two spellings of one character are two records.
        var seen: Set<[UInt8]> = []
        return names.filter { seen.insert(Array(($0.nameText ?? "").utf8)).inserted }
    }

    /// The columns of users that would let a reader impersonate a user.
    ///
    /// A new password comes in plain text.
    private static let credentials: Set<String> = [
        "password", "token", "tfa_secret", "auth_data",
    ]

    /// Returns a webhook without credentials, as it may be stored.
    static func withoutCredentials(_ json: JSONValue) -> JSONValue {
        if case .array(let elements) = json { return .array(elements.map(withoutCredentials)) }
        guard case .object(var members) = json else { return json }
        if let trigger = members["trigger"] { members["trigger"] = withoutCredentials(trigger) }
        guard members["collection"] == "directus_users", let reader = try? JSONReader(json),
            case .object(let payload) = value("payload", reader)
        else { return .object(members) }
        let known = payload.members.filter { !credentials.contains($0.name) }
        members["payload"] = .object(JSONObject(known))
        return .object(members)
    }

    private static func after(
        _ payload: JSONValue, of collection: String, key: FieldValue, in column: String,
        path: String
    ) throws(JSONContractError) -> ReportedImage {
        let reader = try JSONReader(payload, path: path)
        var fields = FieldValue.fields(plain: reader.object)
        if collection == "directus_users" {
            fields = fields.filter { !credentials.contains($0.key) }
        }
        fields[column] = key
        // The payload lacks columns with a default value in the database.
        return ReportedImage(fields: fields, completeness: .partial, path: path)
    }

    private static func changedKeys(_ payload: JSONValue) -> [String]? {
        guard case .object(let object) = payload else { return nil }
        return object.members.map(\.name).sorted()
    }

    private static func user(in accountability: JSONValue) -> String? {
        guard case .object(let object) = accountability, case .string(let user)? = object["user"]
        else { return nil }
        return user
    }
}
