import Crypto
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// The body of `records/query`: a condition in any form of the relay, an order, and a page.
struct RecordQuery: Sendable {
    let recordType: RecordType
    /// The zone; `nil` means all zones.
    let zoneID: ZoneID?
    private let condition: RecordCondition
    let order: [RecordSortKey]
    /// The maximum number of records on the page.
    let limit: Int
    /// The place at which the previous page ended.
    let marker: RecordQueryMarker?
    /// The text that identifies this query, to which markers are bound.
    private let seal: String
    private let markers: MarkerSeal

    /// Parses the body, and checks the query against the schema.
    ///
    /// - Throws: 404 for an unknown record type, 403 for one that is not kept here, 400 for other
    ///   errors.
    init(_ body: JSONReader, for caller: RecordCaller, markers: MarkerSeal) throws {
        let value = try body.require("query", body.value("query"))
        let reader = try JSONReader(value, path: body.path(of: "query"))
        var condition = reader.object
        condition["sortBy"] = nil
        recordType = try reader.require("recordType", try reader.identifier("recordType"))
        let definition = try Self.definition(of: recordType, caller)
        let query = try SubscriptionQuery(
            json: .object(FilterTypes(definition: definition).completed(query: condition)),
            path: reader.path)
        let schema = RecordSchema(definition)
        let predicate: RecordPredicate
        do throws(PredicateError) {
            try query.checkArguments()
            predicate = try query.recordPredicate(implying: caller.impliedOwner)
            try predicate.check(schema: schema)
            try query.checkLists(schema: schema)
            self.condition = try RecordCondition(predicate)
        } catch {
            throw error.refusal(of: query, path: reader.path)
        }
        order = try RecordSortKey.read(reader, definition)
        let isZoneWide = try body.bool("zoneWide") ?? false
        zoneID = isZoneWide && body.value("zoneID") == nil ? nil : try caller.zoneID(body)
        limit = try body.resultsLimit()
        let text =
            "\(recordType)|\(zoneID?.sealName ?? "*")|\(predicate.canonicalText)|"
            + order.map(\.text).joined(separator: ",")
        let digest = SHA256.hash(data: Array(text.utf8)).prefix(6)
        // A marker contains values of a record, so it is bound to the database as well.
        let place = caller.place
        let owner = place.owner?.rawValue ?? ""
        let seal =
            "\(place.container)/\(place.database.rawValue)/\(owner).\(Hexadecimal.encode(digest))"
        self.seal = seal
        marker = try body.string("continuationMarker").map { marker throws(APIError) in
            try RecordQueryMarker(marker, seal: seal, markers)
        }
        self.markers = markers
    }

    private static func definition(
        of type: RecordType, _ caller: RecordCaller
    ) throws(APIError) -> RecordTypeDefinition {
        guard let definition = caller.schema.recordTypes[type] else {
            throw APIError(.notFound, "did not find record type: \(type)")
        }
        guard definition.isKept else {
            throw APIError(
                .accessDenied,
                "the relay does not keep records of type \(type): they are in the application's "
                    + "own database, and the schema does not set shadow for the type")
        }
        return definition
    }

    /// Returns one page, and the marker of the next one if there is more.
    ///
    /// Without an order, a page ends early when the allowance is used up, and its marker continues
    /// from there. With an order, all records of the type have to be looked at.
    ///
    /// - Throws: 413 or 429 if there are too many records to put in order; `CancellationError`.
    func page(
        from shadow: any Shadow, for caller: RecordCaller, at now: Timestamp,
        within allowance: QueryAllowance
    ) async throws -> (records: [ShadowRecord], marker: String?) {
        var page = RecordPage(order: order, limit: limit, after: marker)
        var cursor = order.isEmpty ? marker?.recordID : nil
        var room = allowance.rows
        let condition = condition
        while true {
            let scan = RecordScan(
                of: recordType, in: caller.place, zoneID: zoneID, after: cursor,
                rows: min(512, room), by: caller.party, turn: allowance.beginTurn)
            let slice = try await shadow.scanRecords(scan, into: page) { page, scanned in
                let record = scanned.record
                guard caller.mayRead(record), page.wants(record) else { return true }
                guard condition.holds(for: record, at: now) else { return true }
                return page.take(scanned)
            }
            page = slice.value
            room -= slice.rows
            cursor = slice.cursor
            guard let place = slice.cursor, !page.isFull else { break }
            guard room <= 0 || allowance.isOver else { continue }
            allowance.noteCut()
            guard order.isEmpty else { throw tooMany(room <= 0, allowance) }
            let end = RecordQueryMarker(place)
            return (page.records, try end.text(seal: seal, markers))
        }
        guard page.boundary != nil, let last = page.last else { return (page.records, nil) }
        return (page.records, try last.text(seal: seal, markers))
    }

    /// Returns the error that the records could not be put in order, with advice.
    private func tooMany(_ isForRows: Bool, _ allowance: QueryAllowance) -> APIError {
        let advice =
            "omit sortBy and read all pages, or query a zone with fewer records"
        guard isForRows else {
            return APIError(
                .throttled,
                "query.sortBy: sorting the records of \(recordType) took longer than "
                    + "\(allowance.time.components.seconds) s; try again, or \(advice)",
                retryAfter: 10)
        }
        return APIError(
            .quotaExceeded,
            "query.sortBy: sorting has to read all records of \(recordType), but a query may read "
                + "at most \(allowance.rows); \(advice)")
    }
}

/// The place of a record in the order of a query, at which a page ends and the next one begins.
struct RecordQueryMarker: Sendable {
    /// The values by which the records are sorted.
    let values: [FieldValue]
    let recordID: RecordID

    init(_ record: ShadowRecord, order: [RecordSortKey]) {
        values = order.map { $0.value(of: record) }
        recordID = record.recordID
    }

    /// Creates the place of a record in the order of names.
    init(_ recordID: RecordID) {
        values = []
        self.recordID = recordID
    }

    /// Parses the output of ``text(seal:_:)``.
    ///
    /// - Throws: 400 if it is the marker of another query.
    init(_ text: String, seal: String, _ markers: MarkerSeal) throws(APIError) {
        let foreign = APIError(
            .badRequest, "continuationMarker: it belongs to another query; start again without it")
        do {
            guard let bytes = markers.open(text, subject: seal) else { throw foreign }
            let reader = try JSONReader(try JSONValue(stored: bytes))
            guard let zone = reader.value("z") else { throw foreign }
            values = try (reader.array("v") ?? []).map { try FieldValue(notation: $0) }
            recordID = RecordID(
                recordName: try reader.require("n", try reader.identifier("n")),
                zoneID: try ZoneID(json: zone, path: "z"))
        } catch {
            throw foreign
        }
    }

    /// Returns the encrypted text for clients.
    func text(seal: String, _ markers: MarkerSeal) throws -> String {
        let json: JSONValue = [
            "v": .array(values.map(\.notation)),
            "z": recordID.zoneID.json, "n": .string(recordID.recordName.rawValue),
        ]
        return try markers.close(json.utf8, subject: seal)
    }

    /// Returns whether this place comes before `other`; the names decide between equal records.
    func precedes(_ other: RecordQueryMarker, _ order: [RecordSortKey]) -> Bool {
        for (index, key) in order.enumerated() where index < values.count {
            switch RecordOrder.compare(values[index], other.values[index]) {
            case .same: continue
            case .before: return key.isAscending
            case .after: return !key.isAscending
            }
        }
        return RecordOrder.places(recordID, other.recordID) == .before
    }
}

/// One key of `sortBy`.
struct RecordSortKey: Sendable {
    let field: String
    let isAscending: Bool
    /// The location whose distance sorts locations.
    let relativeLocation: Location?

    /// The key as text, for the seal of a marker.
    var text: String {
        let place = relativeLocation.map { "@\($0.latitude),\($0.longitude)" } ?? ""
        return "\(field)\(isAscending ? "+" : "-")\(place)"
    }

    /// The maximum number of keys in a query; more could never decide anything.
    private static let maximumKeys = 10

    static func read(
        _ query: JSONReader, _ definition: RecordTypeDefinition
    ) throws -> [RecordSortKey] {
        var elements: [JSONValue] = []
        switch query.value("sortBy") {
        case nil: return []
        case .object(let one)?: elements = [.object(one)]
        case .array(let all)?: elements = all
        case let other?:
            throw query.failure("sortBy", "an array is expected, found \(other.kind)")
        }
        guard elements.count <= maximumKeys else {
            throw query.failure("sortBy", "at most \(maximumKeys) keys are allowed")
        }
        return try elements.enumerated().map { index, element in
            try RecordSortKey(
                JSONReader(element, path: query.path(of: "sortBy[\(index)]")), definition)
        }
    }

    private init(_ reader: JSONReader, _ definition: RecordTypeDefinition) throws {
        let name =
            try reader.string("fieldName") == nil ? "systemFieldName" : "fieldName"
        let field = try reader.require("fieldName", try reader.string(name))
        let known = definition.fields[field]
        guard known?.uses.contains(.sortable) ?? RecordSchema.isSystemField(field) else {
            throw reader.failure(
                name, "the field \(field.shortened) is unknown or not marked sortable")
        }
        self.field = field
        isAscending = try reader.bool("ascending") ?? true
        guard let place = try reader.reader("relativeLocation") else {
            relativeLocation = nil
            return
        }
        let value = try place.reader("value") ?? place
        guard let latitude = value.value("latitude")?.double,
            let longitude = value.value("longitude")?.double,
            let location = Location(latitude: latitude, longitude: longitude)
        else {
            throw reader.failure(
                "relativeLocation", "a location {latitude, longitude} is expected")
        }
        relativeLocation = location
    }

    /// Returns the value by which `record` is sorted.
    func value(of record: ShadowRecord) -> FieldValue {
        let isSystemField = SystemField(named: field) != nil
        let value = (isSystemField ? record.systemFields : record.fields)[field] ?? .null
        guard let relativeLocation, case .location(let place) = value else { return value }
        return .double(RecordOrder.distance(place, relativeLocation))
    }
}

extension JSONReader {
    /// Reads `resultsLimit`, which is at most, and by default, CloudKit's 200.
    ///
    /// - Throws: `JSONContractError` if it is not a positive number.
    func resultsLimit(unless fallback: Int = Limits.maximumRecordsPerAnswer) throws -> Int {
        guard let limit = try statedLimit() else { return fallback }
        guard limit > 0 else { throw failure("resultsLimit", "must be 1 or more") }
        return Int(min(limit, Int64(Limits.maximumRecordsPerAnswer)))
    }

    /// Reads `resultsLimit` as it is stated: a whole number, which a client for Android writes as a
    /// text, and others with an empty fraction, as they do in numeric fields.
    ///
    /// - Throws: `JSONContractError` if it is not a whole number.
    func statedLimit() throws(JSONContractError) -> Int64? {
        let stated: Int64?
        switch value("resultsLimit") {
        case .string(let text)?: stated = Int64(text)
        case .number(let number)?: stated = Int64(exactly: number)
        default: return try integer("resultsLimit")
        }
        guard let stated else { throw failure("resultsLimit", "a whole number is expected") }
        return stated
    }
}
