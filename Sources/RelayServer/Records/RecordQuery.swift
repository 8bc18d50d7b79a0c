import Crypto
import Fanout
import PredicateLanguage
import RelayModel
import Storage

/// The body of `records/query`: a condition in any of the relay's forms, an order, and a page.
struct RecordQuery {
    let recordType: RecordType
    /// The zone; `nil` asks all of them.
    let zoneID: ZoneID?
    let predicate: PreparedPredicate
    let order: [RecordSortKey]
    /// Records of this page, at most.
    let limit: Int
    /// Where the page before ended.
    let marker: RecordQueryMarker?
    /// What is told of this query and of no other.
    private let seal: String

    /// Reads the body and checks the query against the schema.
    ///
    /// - Throws: 404 for a record type that is unknown, 403 for one that is not kept here, 400 for
    ///   the rest.
    init(_ body: JSONReader, for caller: RecordCaller) throws {
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
            predicate = try query.recordPredicate()
            try predicate.check(schema: schema)
            self.predicate = try PreparedPredicate(predicate)
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
        let seal = "\(caller.place.database.rawValue).\(Hexadecimal.encode(digest))"
        self.seal = seal
        marker = try body.string("continuationMarker").map { marker throws(APIError) in
            try RecordQueryMarker(marker, seal: seal)
        }
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
                "records of type \(type) lie in their own database; the schema does not keep them "
                    + "in the shadow")
        }
        return definition
    }

    /// One page, and the marker of the next one if there is more.
    func page(
        from shadow: any Shadow, for caller: RecordCaller, at now: Timestamp
    ) async throws -> (records: [ShadowRecord], marker: String?) {
        let page = RecordPage(order: order, limit: limit, after: marker)
        let cursor = order.isEmpty ? marker?.recordID : nil
        let predicate = predicate
        let records = try await shadow.foldRecords(
            of: recordType, in: caller.place, zoneID: zoneID, after: cursor, into: page
        ) { page, record in
            guard caller.mayRead(record) else { return true }
            let fields = record.fields.merging(record.systemFields) { own, _ in own }
            guard predicate.evaluate(on: fields, now: now) == .true else { return true }
            return page.take(record)
        }.records
        let shown = Array(records.prefix(limit))
        guard records.count > limit, let last = shown.last else { return (shown, nil) }
        return (shown, RecordQueryMarker(last, order: order).text(seal: seal))
    }
}

/// The records of a page as they are found: the first in the order of the query, and one more.
struct RecordPage: Sendable {
    let order: [RecordSortKey]
    let limit: Int
    let after: RecordQueryMarker?
    private(set) var records: [ShadowRecord] = []

    init(order: [RecordSortKey], limit: Int, after: RecordQueryMarker?) {
        self.order = order
        self.limit = limit
        self.after = after
    }

    /// Takes a record that matches; returns whether more could be wanted.
    ///
    /// Complexity: O(log limit) comparisons and O(limit) moves, whatever the number of records.
    mutating func take(_ record: ShadowRecord) -> Bool {
        guard !order.isEmpty else {
            records.append(record)
            return records.count <= limit
        }
        let place = RecordQueryMarker(record, order: order)
        if let after, !after.precedes(place, order) { return true }
        var low = 0
        var high = records.count
        while low < high {
            let middle = (low + high) / 2
            if RecordQueryMarker(records[middle], order: order).precedes(place, order) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        guard low <= limit else { return true }
        records.insert(record, at: low)
        if records.count > limit + 1 { records.removeLast() }
        return true
    }
}

/// The place of a record in the order of a query: where a page ends and the next one begins.
struct RecordQueryMarker: Sendable {
    /// The values by which the records are sorted.
    let values: [FieldValue]
    let recordID: RecordID

    init(_ record: ShadowRecord, order: [RecordSortKey]) {
        values = order.map { $0.value(of: record) }
        recordID = record.recordID
    }

    /// Reads what ``text(seal:)`` wrote.
    ///
    /// - Throws: 400 if it is the marker of another query.
    init(_ text: String, seal: String) throws(APIError) {
        let foreign = APIError(
            .badRequest, "continuationMarker: it was not made for this query; begin without one")
        do {
            guard let bytes = Base64.decode(text) else { throw foreign }
            let reader = try JSONReader(try JSONValue(parsing: bytes))
            guard try reader.string("q") == seal, let zone = reader.value("z") else {
                throw foreign
            }
            values = try (reader.array("v") ?? []).map { try FieldValue(notation: $0) }
            recordID = RecordID(
                recordName: try reader.require("n", try reader.identifier("n")),
                zoneID: try ZoneID(json: zone, path: "z"))
        } catch {
            throw foreign
        }
    }

    /// The marker as clients carry it: opaque.
    func text(seal: String) -> String {
        let json: JSONValue = [
            "q": .string(seal), "v": .array(values.map(\.notation)),
            "z": recordID.zoneID.json, "n": .string(recordID.recordName.rawValue),
        ]
        return Base64.encode(json.utf8)
    }

    /// Whether this place comes before `other`; names decide between records that are alike.
    func precedes(_ other: RecordQueryMarker, _ order: [RecordSortKey]) -> Bool {
        for (index, key) in order.enumerated() where index < values.count {
            switch RecordOrder.compare(values[index], other.values[index]) {
            case .same: continue
            case .before: return key.isAscending
            case .after: return !key.isAscending
            }
        }
        let zones = (recordID.zoneID.sealName, other.recordID.zoneID.sealName)
        return zones.0 != zones.1
            ? zones.0 < zones.1 : recordID.recordName < other.recordID.recordName
    }
}

/// One key of `sortBy`.
struct RecordSortKey: Sendable {
    let field: String
    let isAscending: Bool
    /// Places are sorted by their distance from here.
    let relativeLocation: Location?

    /// The key as text, for the seal of a marker.
    var text: String {
        let place = relativeLocation.map { "@\($0.latitude),\($0.longitude)" } ?? ""
        return "\(field)\(isAscending ? "+" : "-")\(place)"
    }

    /// Keys of one query, at most; more could never decide anything.
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
                name, "the field \(field.shortened) is not marked sortable, or unknown")
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
                "relativeLocation", "a place {latitude, longitude} is expected")
        }
        relativeLocation = location
    }

    /// The value by which `record` is sorted.
    func value(of record: ShadowRecord) -> FieldValue {
        let value = record.fields[field] ?? record.systemFields[field] ?? .null
        guard let relativeLocation, case .location(let place) = value else { return value }
        return .double(RecordOrder.distance(place, relativeLocation))
    }
}

extension JSONReader {
    /// `resultsLimit`, at most CloudKit's 200, which it is unless given.
    ///
    /// - Throws: `JSONContractError` if it is not a positive number.
    func resultsLimit() throws -> Int {
        guard let limit = try integer("resultsLimit") else {
            return Limits.maximumRecordsPerAnswer
        }
        guard limit > 0 else { throw failure("resultsLimit", "must be 1 or more") }
        return Int(min(limit, Int64(Limits.maximumRecordsPerAnswer)))
    }
}
