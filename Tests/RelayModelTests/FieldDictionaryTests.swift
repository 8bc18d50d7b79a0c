import RelayModel
import Testing

/// One reader of dictionaries serves records, conditions and change sources.
@Suite struct FieldDictionaryTests {
    typealias Element = SchemaFieldType.Element

    private static let moment = FieldValue.timestamp(Timestamp(milliseconds: 1_700_000_000_123))
    private static let place = Location(latitude: 52.5, longitude: 13.4).map(FieldValue.location)

    private static func reference(_ zone: ZoneID = .default) throws -> FieldValue {
        let name = try #require(RecordName(rawValue: "a"))
        return .reference(RecordReference(RecordID(recordName: name, zoneID: zone)))
    }

    @Test(
        arguments: [
            (.string, "x", .string("x")),
            (.int64, 7, .integer(7)), (.int64, .number(3), .integer(3)),
            (.int64, true, .integer(1)),
            (.int64, false, .integer(0)), (.int64, "-9223372036854775808", .integer(.min)),
            (.double, 7, .double(7)), (.double, .number(1.5), .double(1.5)),
            (.double, "1.5", .double(1.5)),
            (.double, "-1e3", .double(-1000)),
            (.timestamp, 1_700_000_000_123, moment), (.timestamp, "1700000000123", moment),
            (.timestamp, .number(1_700_000_000_123), moment),
            (.bytes, "AQI=", .bytes([1, 2])),
            (
                .location, ["latitude": .number(52.5), "longitude": .number(13.4), "altitude": 3],
                place
            ),
            (.location, ["latitude": "52.5", "longitude": "13.4"], place),
            (.boolean, true, .bool(true)), (.boolean, 0, .bool(false)),
            (.objectID, "000102030405060708090a0b", .objectID(Array(0..<12))),
        ] as [(Element, JSONValue, FieldValue?)])
    func `a value of each type is read for every purpose`(
        type: Element, json: JSONValue, value: FieldValue?
    ) throws {
        for purpose in [FieldDictionary.Purpose.kept, .compared] {
            let reader = FieldDictionary(purpose)
            #expect(try reader.value(json, as: SchemaFieldType(type), path: "f") == value)
            let list = SchemaFieldType(type, isList: true)
            let values = try reader.value([json, json], as: list, path: "f")
            #expect(values == value.map { .list([$0, $0]) })
        }
    }

    @Test(
        arguments: [
            (.string, 7), (.string, .null), (.int64, .number(3.5)), (.int64, "seven"),
            (.int64, "3.0"),
            (.int64, .null), (.int64, .number(1e300)), (.double, "inf"), (.double, "nan"),
            (.double, true), (.double, "1e999"), (.timestamp, .number(3.5)), (.timestamp, true),
            (.timestamp, "2023-11-14T22:13:20Z"), (.bytes, "?"), (.bytes, [1]),
            (.reference, "a"), (.location, ["latitude": 91, "longitude": 0]),
            (.location, ["lat": 1, "lng": 2]), (.location, "1,2"), (.boolean, "true"),
            (.objectID, "00"), (.uuid, "x"),
        ] as [(Element, JSONValue)])
    func `a value that does not fit its type is refused in the service's words`(
        type: Element, json: JSONValue
    ) {
        for purpose in [FieldDictionary.Purpose.kept, .compared] {
            let error = #expect(throws: JSONContractError.self) {
                try FieldDictionary(purpose).value([json], as: .init(type, isList: true), path: "f")
            }
            #expect(error?.path == "f[0]")
            #expect(error?.reason == "Invalid value, expected type \(type.rawValue).")
        }
    }

    @Test func `a value without a type gets its kind from the JSON, also within lists`() throws {
        for purpose in [FieldDictionary.Purpose.kept, .compared] {
            let json: JSONValue = [
                true, 7, .number(1.5), "x", .null, ["recordName": "a"],
                ["latitude": .number(52.5), "longitude": .number(13.4)],
            ]
            let place = try #require(Self.place)
            let expected: [FieldValue] = [
                .integer(1), .integer(7), .double(1.5), .string("x"), .null,
                try Self.reference(), place,
            ]
            let values = try FieldDictionary(purpose).inferred(json, path: "f")
            #expect(values == .list(expected))
        }
    }

    // MARK: What records and conditions have apart

    @Test func `dates of records have four-digit years, and those of conditions have any`()
        throws
    {
        let type = SchemaFieldType(.timestamp)
        for inside in [-62_135_596_800_000, 253_402_300_799_999] as [Int64] {
            let value = try FieldDictionary(.kept).value(.integer(inside), as: type, path: "f")
            #expect(value == .timestamp(Timestamp(milliseconds: inside)))
        }
        for outside in [-62_135_596_800_001, 253_402_300_800_000, .min, .max] as [Int64] {
            #expect(throws: JSONContractError.self) {
                try FieldDictionary(.kept).value(.integer(outside), as: type, path: "f")
            }
            let value = try FieldDictionary(.compared).value(
                .integer(outside), as: type, path: "f")
            #expect(value == .timestamp(Timestamp(milliseconds: outside)))
        }
    }

    /// A dictionary that the relay writes in an answer reads back as the same dictionary.
    @Test(
        arguments: [
            ["$ref": .string("orders"), "$id": .integer(7)], ["$x": .map(["$y": .bool(true)])],
            ["a": .list([.map(["$date": .string("x")])])], ["a": .timestamp(.init(seconds: 1))],
        ] as [RecordFields])
    func `a dictionary in a text is read as one, whatever its members are called`(
        members: RecordFields
    ) throws {
        let answered = JSONValue.object(FieldValue.notation(fields: members)).text
        let read = try FieldDictionary(.kept).value(
            .string(answered), as: .init(.map), path: "f")
        #expect(read == .map(members))
        let written = try FieldDictionary(.kept).value(
            .string(FieldValue.map(members).notation.text), as: .init(.map), path: "f")
        #expect(written == .map(members))
    }

    @Test func `an untyped object is a dictionary in records, and refused in conditions`()
        throws
    {
        let object: JSONValue = ["a": ["b": 1]]
        #expect(
            try FieldDictionary(.kept).inferred(object, path: "f")
                == .map(["a": .map(["b": .integer(1)])]))
        let asset: JSONValue = ["fileChecksum": "x", "size": 3]
        #expect(
            try FieldDictionary(.kept).value(asset, as: .init(.asset), path: "f")
                == .map(["fileChecksum": .string("x"), "size": .integer(3)]))
        for type in [Element.asset, .any] {
            #expect(throws: JSONContractError.self) {
                try FieldDictionary(.compared).value(object, as: .init(type), path: "f")
            }
        }
    }

    @Test
    func `a reference's zone is read strictly in records, and leniently in conditions`()
        throws
    {
        let type = SchemaFieldType(.reference)
        let zone = try #require(ZoneID(zoneName: "z", ownerRecordName: UserID(rawValue: "u")))
        let plain: [JSONValue] = [
            ["zoneName": "z", "ownerRecordName": "u"], ["zoneName": "z", "ownerName": "u"],
        ]
        for json in plain {
            let reference: JSONValue = ["recordName": "a", "zoneID": json, "action": "NONE"]
            let expected = try Self.reference(zone)
            for purpose in [FieldDictionary.Purpose.kept, .compared] {
                let value = try FieldDictionary(purpose).value(reference, as: type, path: "f")
                #expect(value == expected)
            }
        }
        let odd: [JSONValue] = [["zoneName": "z", "ownerName": "u", "size": 3], ["size": 3]]
        for json in odd {
            let reference: JSONValue = ["recordName": "a", "zoneID": json]
            #expect(throws: JSONContractError.self) {
                try FieldDictionary(.kept).value(reference, as: type, path: "f")
            }
            #expect(throws: Never.self) {
                try FieldDictionary(.compared).value(reference, as: type, path: "f")
            }
        }
    }
}
