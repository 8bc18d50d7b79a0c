import RelayModel

/// Parse Server's afterSave and afterDelete hooks.
///
/// `installationId` is the originating device.
enum ParseReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let trigger = try reader.require("triggerName", try reader.string("triggerName"))
        let isDeletion: Bool
        switch trigger {
        case "afterSave": isDeletion = false
        case "afterDelete": isDeletion = true
        // Hooks of logins, queries, password resets and later additions. Refusing one would make
        // Parse refuse the app's request.
        default: return .ignored("\(trigger.prefix(64)) does not report a change that has happened")
        }
        let object = try reader.require("object", try reader.reader("object"))
        let original = try reader.reader("original")
        let operation: ChangeOperation = isDeletion ? .delete : original == nil ? .create : .update
        let name = try object.require("className", try object.string("className"))
        var change = ReportedChange(operation, of: ReportedTable(name: name))
        if operation == .delete {
            change.before = try image(object, of: name)
        } else {
            change.after = try image(object, of: name)
            if let original { change.before = try image(original, of: name) }
        }
        change.deviceID = reader.anyText("installationId")
        change.userID = ((try? reader.reader("user")) ?? nil)?.anyText("objectId")
        change.occurredAt = object.anyMoment("updatedAt")
        change.readers = try readers(object)
        if let id = object.anyText("objectId"), let updatedAt = object.anyText("updatedAt") {
            // Parse does not identify deliveries, but a row has only one version at a time.
            change.key = (.expression, "\(name);\(id);\(updatedAt);\(trigger)")
        }
        return .changes([change])
    }

    /// Returns the readers in the row's ACL: the IDs of users, `role:…`, or `world` for everyone.
    ///
    /// As in Parse, the list is empty if the ACL lets nobody read the row. The result is `nil` if
    /// the row has no ACL; then the permissions of its class apply.
    private static func readers(_ object: JSONReader) throws(JSONContractError) -> [String]? {
        guard let entries = try object.reader("ACL") else { return nil }
        return entries.object.members.compactMap { entry -> String? in
            guard case .object(let rights) = entry.value, rights["read"] == .bool(true) else {
                return nil
            }
            return entry.name == "*" ? "world" : entry.name
        }
    }

    /// The columns of users and sessions that would let a reader impersonate a user.
    private static let credentials: Set<String> = ["password", "sessionToken", "authData"]

    /// Headers of the app's own request that would let a reader act as its user, or with more
    /// rights.
    private static let secretHeaders: Set<String> = [
        "x-parse-session-token", "x-parse-master-key", "x-parse-maintenance-key",
        "x-parse-rest-api-key", "authorization", "proxy-authorization", "cookie",
    ]

    /// Returns a hook without credentials, as it may be stored.
    ///
    /// Every hook has the headers and the user of the app's request.
    static func withoutCredentials(_ hook: JSONValue) -> JSONValue {
        if case .array(let hooks) = hook { return .array(hooks.map(withoutCredentials)) }
        guard case .object(var members) = hook else { return hook }
        if case .object(let headers)? = members["headers"] {
            let known = headers.members.filter { !secretHeaders.contains($0.name.lowercased()) }
            members["headers"] = .object(JSONObject(known))
        }
        var ofUsers = ["user"]
        if case .object(let object)? = members["object"],
            object["className"] == "_User" || object["className"] == "_Session"
        {
            ofUsers += ["object", "original"]
        }
        for name in ofUsers {
            guard case .object(let row)? = members[name] else { continue }
            let known = row.members.filter {
                !$0.name.hasPrefix("_") && !credentials.contains($0.name)
            }
            members[name] = .object(JSONObject(known))
        }
        return .object(members)
    }

    /// Returns the row without protocol members, Parse's internal columns and credentials.
    ///
    /// The names of internal columns begin with an underscore. Credentials must not appear in the
    /// log.
    private static func image(
        _ reader: JSONReader, of className: String
    ) throws(JSONContractError) -> ReportedImage {
        let hasCredentials = className == "_User" || className == "_Session"
        var fields: RecordFields = [:]
        for member in reader.object.members
        where member.name != "className" && !member.name.hasPrefix("_")
            && !(hasCredentials && credentials.contains(member.name))
        {
            if ["createdAt", "updatedAt"].contains(member.name) {
                fields[member.name] = date(member.value)
                continue
            }
            do throws(JSONContractError) {
                fields[member.name] = try value(member.value)
            } catch {
                throw error.inside(reader.path(of: member.name))
            }
        }
        return ReportedImage(fields: fields, completeness: .full, path: reader.path)
    }

    private static func date(_ json: JSONValue) -> FieldValue {
        if case .string(let text) = json, let moment = Timestamp(iso8601: text) {
            return .timestamp(moment)
        }
        return FieldValue(plain: json)
    }

    /// Returns a value.
    ///
    /// The path of an error is built only when an error occurs. Otherwise each element of a list
    /// would carry a copy of all names before it, which may be long.
    private static func value(_ json: JSONValue) throws(JSONContractError) -> FieldValue {
        switch json {
        case .array(let elements):
            var values: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                do throws(JSONContractError) {
                    values.append(try value(element))
                } catch {
                    throw error.inside("[\(index)]")
                }
            }
            return .list(values)
        case .object(let object):
            if case .string(let type)? = object["__type"] {
                return try typed(type, try JSONReader(json))
            }
            var fields: RecordFields = [:]
            for member in object.members {
                do throws(JSONContractError) {
                    fields[member.name] = try value(member.value)
                } catch {
                    throw error.inside(member.name)
                }
            }
            return .map(fields)
        default: return FieldValue(plain: json)
        }
    }

    private static func typed(
        _ type: String, _ reader: JSONReader
    ) throws(JSONContractError) -> FieldValue {
        switch type {
        case "Date":
            guard let moment = try reader.moment("iso") else { break }
            return .timestamp(moment)
        case "Pointer", "Object":
            // A pointer may include the object that it points to.
            guard let name = try reader.identifier("objectId", as: RecordName.self) else { break }
            return .reference(RecordReference(RecordID(recordName: name)))
        case "GeoPoint":
            guard let place = LocationText.location(FieldValue(plain: .object(reader.object)))
            else { break }
            return .location(place)
        case "Bytes":
            guard let bytes = try reader.string("base64").flatMap({ Base64.decode($0) }) else {
                break
            }
            return .bytes(bytes)
        default: return FieldValue(plain: .object(reader.object))
        }
        throw JSONContractError(
            path: reader.path, reason: "is not a valid \(type) in Parse's format")
    }
}
