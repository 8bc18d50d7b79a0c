import RelayModel

extension RecordModification {
    /// Returns the records whose operations have fields but no record type.
    ///
    /// The stored record's type is meant, as in CloudKit for existing records (CloudKit-PHP and
    /// others leave the type out of updates). Unreadable parts are skipped here, because the
    /// parsing of the operations reports them.
    static func untypedRecords(_ body: JSONReader, _ caller: RecordCaller) -> [RecordID] {
        guard let elements = try? body.array("operations"),
            let zoneID = try? caller.zoneID(body)
        else { return [] }
        return elements.compactMap { element in
            guard let operation = try? JSONReader(element),
                let record = try? operation.reader("record"), record.value("recordType") == nil,
                let fields = try? RecordOperationReading.fields(of: record),
                !fields.object.members.isEmpty,
                let name: RecordName = try? record.identifier("recordName"),
                let zoneID = try? caller.zoneID(record, unless: zoneID)
            else { return nil }
            return RecordID(recordName: name, zoneID: zoneID)
        }
    }
}
