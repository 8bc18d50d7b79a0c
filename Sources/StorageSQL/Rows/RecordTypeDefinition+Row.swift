import RelayModel
import Storage

extension RecordTypeDefinition {
    /// Returns the grants as a JSON array of pairs of permission and role.
    func storedGrants() throws(JSONContractError) -> String {
        try JSONValue.array(
            grants.map { .array([.string($0.permission.rawValue), .string($0.role.rawValue)]) }
        ).storedText(path: "grants")
    }

    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "recordType")
        self.init(
            try stored.identifier("name"), isKept: row["isKept"], isInferred: row["isInferred"])
        guard case .array(let elements) = try stored.json("grants") else {
            throw stored.damage("grants")
        }
        grants = try elements.map { element in
            guard case .array(let parts) = element, parts.count == 2,
                case .string(let word) = parts[0], case .string(let text) = parts[1],
                let role = RoleName(rawValue: text),
                let permission = RecordGrant.Permission(rawValue: word)
            else { throw stored.damage("grants") }
            return RecordGrant(permission, to: role)
        }
    }
}

extension FieldDefinition {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "recordField")
        self.init(
            try stored.require("type", SchemaFieldType(word: row["type"])),
            uses: FieldUses(rawValue: row["uses"]), isEncrypted: row["isEncrypted"])
    }
}
