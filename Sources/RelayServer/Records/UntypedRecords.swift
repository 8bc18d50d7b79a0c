import RelayModel

extension RecordModification {
    /// The records whose operations have fields and do not say of which type: the stored record's
    /// type is meant, as CloudKit has it for records that are there (CloudKit-PHP and others leave
    /// it out of updates).
    ///
    /// What cannot be read is left to the reading of the operations, which says why.
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
