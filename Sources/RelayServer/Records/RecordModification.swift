import RelayModel
import Storage

/// The body of `records/modify`: the operations, and the form of their outcomes.
struct RecordModification {
    /// One operation, with the form in which its record is shown.
    struct Operation {
        let edit: RecordEdit
        let view: RecordJSON
    }

    private let request: ItemisedRequest<Operation>
    /// Whether a refused operation undoes the others.
    let atomicity: EditAtomicity
    /// What the schema must learn before the operations are applied.
    let additions: [RecordTypeDefinition]

    /// Parses the body; unknown members are ignored, as in CloudKit.
    ///
    /// `stored` has the stored types of the records that ``untypedRecords(_:_:)`` found.
    ///
    /// - Throws: An error that makes the whole request unreadable.
    init(
        _ body: JSONReader, by caller: RecordCaller, from origin: RecordOrigin,
        limits: RequestLimits,
        stored: [RecordID: RecordType] = [:], assignName: () -> String
    ) throws {
        let elements = try body.operations(within: limits)
        let zoneID = try caller.zoneID(body)
        var reading = RecordOperationReading(
            caller: caller, zoneID: zoneID, origin: origin, shown: try RecordJSON(body),
            stored: stored)
        request = ItemisedRequest(elements, of: .record) { element, path in
            let (edit, view) = try reading.edit(
                element, path: path, assignedName: assignName())
            return Operation(edit: edit, view: view)
        }
        // CloudKit's custom zones are atomic unless told otherwise; its default zone never is.
        let isAtomic = try body.bool("atomic") ?? (zoneID != .default)
        atomicity = isAtomic ? .allOrNothing : .independent
        additions = reading.inference.additions
    }

    /// The operations to apply; `nil` if an atomic request has been refused already.
    var edits: [RecordEdit]? { request.operations(atomicity)?.map(\.edit) }

    /// Returns the answer's entries, one for each operation, in order; `outcomes` belong to
    /// ``edits``.
    func entries(
        outcomes: [RecordEditOutcome], for caller: RecordCaller, uuid: String
    ) -> [JSONValue] {
        // The answer uses what the schema has learned from the request.
        let caller = caller.knowing(additions)
        return request.entries(outcomes, uuid: uuid) { operation, outcome in
            (outcome ?? .undone).entry(
                of: operation.edit, for: caller, operation.view, uuid: uuid)
        }
    }

    /// Refuses the whole request if nothing was applied only because no user is signed in.
    ///
    /// Clients sign their user in after a 421 for the request, and do not look for it elsewhere.
    ///
    /// - Throws: 421.
    func requireUser(outcomes: [RecordEditOutcome], for caller: RecordCaller) throws(APIError) {
        guard caller.isNobody else { return }
        var refusal: APIError?
        for (item, outcome) in request.judged(outcomes) {
            switch item {
            case .refused(let error, _):
                guard error.code == .authenticationRequired else { return }
                refusal = error
            case .operation:
                switch outcome ?? .undone {
                case .undone: break
                case .refused(.notWritable), .refused(.notCreatable):
                    refusal = caller.authenticationRequired
                case .saved, .deleted, .refused: return
                }
            }
        }
        if let refusal { throw refusal }
    }
}

/// Parses operations, one after the other.
struct RecordOperationReading {
    let caller: RecordCaller
    let zoneID: ZoneID
    let origin: RecordOrigin
    let shown: RecordJSON
    /// The types of stored records whose operations do not name one.
    let stored: [RecordID: RecordType]
    private(set) var inference: SchemaInference
    /// The types whose records the caller may write, regardless of the creator.
    private let typesWritableByAll: Set<RecordType>
    private var seen: Set<RecordID> = []
    /// The number of references so far whose targets have to be validated.
    private var validatedCount = 0

    init(
        caller: RecordCaller, zoneID: ZoneID, origin: RecordOrigin, shown: RecordJSON,
        stored: [RecordID: RecordType]
    ) {
        self.stored = stored
        self.caller = caller
        self.zoneID = zoneID
        self.origin = origin
        self.shown = shown
        inference = SchemaInference(
            caller.schema, environment: caller.place.container.environment)
        typesWritableByAll =
            caller.place.database == .public
            ? Set(
                caller.schema.recordTypes.values
                    .filter { Self.isWritableByAll($0, for: caller) }.map(\.name))
            : []
    }

    /// Parses one operation.
    mutating func edit(
        _ element: JSONValue, path: String, assignedName: String
    ) throws -> (RecordEdit, RecordJSON) {
        let reader = try JSONReader(element, path: path)
        let kind: RecordEdit.Kind = try reader.require(
            "operationType", try reader.choice("operationType"))
        let record = try reader.require("record", try reader.reader("record"))
        let id = try recordID(record, kind, assignedName)
        var edit = RecordEdit(kind, id, type: try self.type(record, kind) ?? stored[id])
        edit.changeTag = try record.string("recordChangeTag")
        edit.deviceID = origin.device
        edit.stampsDevice = !origin.isPage
        // A page sends records back as it fetched them, so its `clientId` says which device calls.
        edit.statedStamp = origin.isPage && origin.device != nil ? nil : try Self.stamp(record)
        guard seen.insert(edit.recordID).inserted else {
            throw record.failure(
                "recordName",
                "another operation of this request names the same record; send it in another "
                    + "request")
        }
        if kind != .delete, kind != .forceDelete { try readFields(record, into: &edit) }
        if let type = edit.recordType { try completeRights(of: &edit, type) }
        if edit.recordType == nil || kind == .forceDelete {
            edit.typesWritableByAll = typesWritableByAll
        }
        return (edit, shown.showing(try reader.strings("desiredKeys")))
    }

    private func recordID(
        _ record: JSONReader, _ kind: RecordEdit.Kind, _ assignedName: String
    ) throws -> RecordID {
        var name: RecordName? = try record.identifier("recordName")
        if name == nil, kind == .create || kind == .forceUpdate || kind == .forceReplace {
            name = RecordName(rawValue: assignedName)
        }
        let zoneID = try caller.zoneID(record, unless: zoneID)
        return RecordID(
            recordName: try record.require("recordName", name), zoneID: zoneID)
    }

    private func type(_ record: JSONReader, _ kind: RecordEdit.Kind) throws -> RecordType? {
        let type: RecordType? = try record.identifier("recordType")
        guard type?.rawValue != "Users" else {
            throw APIError(
                .accessDenied,
                "\(record.path(of: "recordType")): users are managed by the application's identity "
                    + "provider; clients cannot write records of type Users")
        }
        if kind == .create { return try record.require("recordType", type) }
        // CloudKit ignores the type in a forced deletion, and clients write anything there.
        if kind == .forceDelete, let type, caller.schema.recordTypes[type] == nil { return nil }
        return type
    }

    /// Returns the member `fields`; PHP writes an empty dictionary as an empty array.
    static func fields(of record: JSONReader) throws(JSONContractError) -> JSONReader {
        if let fields = record.value("fields"), fields != [] {
            return try JSONReader(fields, path: record.path(of: "fields"))
        }
        return try JSONReader([:], path: record.path(of: "fields"))
    }

    /// Returns the error of an operation without a type on a record that does not exist.
    private static func untyped(_ edit: RecordEdit) -> APIError {
        switch edit.kind {
        case .update, .replace, .delete: .noRecord(edit.recordID.recordName)
        case .create, .forceUpdate, .forceReplace, .forceDelete: .recordTypeRequired
        }
    }

    private mutating func readFields(_ record: JSONReader, into edit: inout RecordEdit) throws {
        let fields = try Self.fields(of: record)
        let definition = edit.recordType.flatMap { inference.definition(of: $0) }
        let reading = try RecordFieldReading(
            definition: definition, impliedOwner: caller.impliedOwner
        ).read(fields)
        guard JSONValue.object(fields.object).utf8.count <= Limits.maximumRecordBytes else {
            throw APIError.recordTooLarge
        }
        edit.fields = reading.fields
        edit.wire = reading.wire
        edit.validated = try validated(reading, in: edit.recordID.zoneID)
        guard let type = edit.recordType else {
            guard edit.fields.isEmpty else { throw Self.untyped(edit) }
            return
        }
        // Learned in a copy, so that a refused operation leaves nothing learned.
        var trial = inference
        let admitted = try trial.admit(
            type, fields: edit.fields, emptyLists: reading.emptyLists)
        if edit.kind == .create { try caller.checkCreation(of: admitted) }
        inference = trial
    }

    /// The numbers of references of one record and of one request that may be validated; the writer
    /// looks up each target while everybody waits.
    private static let mostValidated = (record: 1000, request: 2000)

    /// Returns the records that must exist, each once.
    private mutating func validated(
        _ reading: RecordFieldReading.Reading, in zoneID: ZoneID
    ) throws(APIError) -> [RecordID] {
        var known: Set<RecordID> = []
        let validated = reading.validated(in: zoneID).filter { known.insert($0).inserted }
        let most = Self.mostValidated
        guard validated.count <= most.record else {
            throw APIError(
                .quotaExceeded,
                "a record may have at most \(most.record) references with the action VALIDATE")
        }
        guard validatedCount + validated.count <= most.request else {
            throw APIError(
                .quotaExceeded,
                "the records of a request may have at most \(most.request) references with the "
                    + "action VALIDATE; send this record in another request")
        }
        validatedCount += validated.count
        return validated
    }

    private func completeRights(of edit: inout RecordEdit, _ type: RecordType) throws {
        guard caller.place.database == .public else { return }
        guard let definition = inference.definition(of: type) else { return }
        edit.mayCreate = (try? caller.checkCreation(of: definition)) != nil
        edit.isWritableByAll = Self.isWritableByAll(definition, for: caller)
    }

    private static func isWritableByAll(
        _ definition: RecordTypeDefinition, for caller: RecordCaller
    ) -> Bool {
        definition.grants(.write, to: .world)
            || caller.user != nil && definition.grants(.write, to: .icloud)
    }

    private static func stamp(_ record: JSONReader) throws -> RecordStamp? {
        guard let modified = try record.reader("modified") else { return nil }
        let deviceID: DeviceID? = try modified.identifier("deviceID")
        return RecordStamp(
            at: Timestamp(milliseconds: milliseconds(modified.value("timestamp"))), userID: nil,
            deviceID: deviceID?.rawValue == UnnamedStamp.device ? nil : deviceID)
    }

    /// Returns the time of a stamp, which serves only to tell whether it repeats the stored one;
    /// clients write their own clock's time, in any form.
    private static func milliseconds(_ json: JSONValue?) -> Int64 {
        switch json {
        case .integer(let number)?: number
        case .number(let number)?: Int64(exactly: number.rounded()) ?? 0
        default: 0
        }
    }
}

extension RecordEditOutcome {
    /// Returns the entry of the answer.
    func entry(
        of edit: RecordEdit, for caller: RecordCaller, _ view: RecordJSON, uuid: String
    ) -> JSONValue {
        let name = edit.recordID.recordName.rawValue
        switch self {
        case .saved(var record):
            // A caller that may write a record but not read it is shown only what it wrote.
            if !caller.mayRead(record) {
                record.fields = record.fields.filter { edit.fields[$0.key] != nil }
            }
            return .object(view.record(record, for: caller))
        case .deleted:
            return [
                "recordName": .string(name), "deleted": true,
                "zoneID": caller.json(edit.recordID.zoneID),
            ]
        case .undone:
            return APIError.undone.entry("recordName", .string(name), uuid: uuid)
        case .refused(let refusal):
            return refusal.error(about: edit, for: caller, view).entry(
                "recordName", .string(name), uuid: uuid)
        }
    }
}

extension RecordRefusal {
    func error(about edit: RecordEdit, for caller: RecordCaller, _ view: RecordJSON) -> APIError {
        let name = edit.recordID.recordName
        func withServerRecord(
            _ code: ServerErrorCode, _ text: String, _ record: ShadowRecord?
        )
            -> APIError
        {
            guard let record, caller.mayRead(record) else { return APIError(code, text) }
            return APIError(
                code, text, details: ["serverRecord": .object(view.record(record, for: caller))])
        }
        switch self {
        case .notFound: return .noRecord(name)
        case .zoneNotFound: return .zoneNotFound(edit.recordID.zoneID)
        case .exists(let record):
            return withServerRecord(.exists, "record to insert already exists: \"\(name)\"", record)
        case .conflict(let record):
            let named = "\"\(edit.changeTag?.shortened ?? "")\""
            let text = record.map { "its recordChangeTag is \"\($0.changeTag)\", not \(named)" }
            return withServerRecord(
                .conflict,
                "the record was changed: \(text ?? "\(named) is not its recordChangeTag")", record)
        case .tagRequired:
            return APIError(
                .badRequest,
                "recordChangeTag is required for \(edit.kind.rawValue), but not for forceUpdate "
                    + "and forceReplace")
        case .otherType(let type):
            return APIError(
                .badRequest, "the record \"\(name)\" already exists with the record type \(type)")
        case .typeRequired: return .recordTypeRequired
        case .missingReference(let target):
            return APIError(
                .validatingReferenceError,
                "a reference points to the record \"\(target.recordName)\", which does not exist")
        case .notWritable where caller.isNobody, .notCreatable where caller.isNobody:
            return caller.authenticationRequired
        case .notCreatable(let type):
            return APIError(.accessDenied, "CREATE operation not permitted on \(type)")
        case .tooLarge: return .recordTooLarge
        case .overQuota(let refusal): return APIError(refusal)
        case .tooMuchAtOnce(let bytes):
            return APIError(
                .quotaExceeded,
                "the earlier operations of the request already change \(bytes) bytes of records or "
                    + "more; send this one in another request")
        case .bounded(let bound, let reason): return APIError(bound: bound, reason: reason)
        case .unfinished:
            return APIError(
                .quotaExceeded,
                "\(CascadeRoom.mostAtOnce) or more records, or very large ones, refer with "
                    + "DELETE_SELF to records that this atomic request deletes; send each deletion "
                    + "in a request of its own")
        case .notWritable:
            return APIError(.accessDenied, "WRITE operation not permitted on \"\(name)\"")
        }
    }
}

extension APIError {
    /// Returns the error of a record that does not exist.
    static func noRecord(_ name: RecordName) -> APIError {
        APIError(.notFound, "there is no record \"\(name)\"")
    }

    /// The error of an operation that would create a record without a type.
    static let recordTypeRequired = APIError(
        .badRequest, "recordType is required for a new record")

    /// The error of a record that is too large, in one operation or with what it has already.
    static let recordTooLarge = APIError(
        .quotaExceeded, "a record may have at most \(Limits.maximumRecordBytes) bytes")

    /// Returns the error of a zone that does not exist.
    static func zoneNotFound(_ zoneID: ZoneID) -> APIError {
        APIError(.zoneNotFound, "there is no zone \"\(zoneID.zoneName)\"")
    }
}
