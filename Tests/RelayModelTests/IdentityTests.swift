import RelayModel
import Testing

@Suite struct IdentityTests {
    private func texts(_ length: Int) -> String {
        String(repeating: "a", count: length)
    }

    @Test func `two spellings of one letter name two users`() throws {
        let composed = try #require(UserID(rawValue: "Ren\u{E9}e"))
        let decomposed = try #require(UserID(rawValue: "Rene\u{301}e"))
        #expect(composed.rawValue == decomposed.rawValue)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, composed]).count == 2)
        #expect([composed: 1, decomposed: 2][composed] == 1)
        // Zones with different spellings are different too, and so are their records.
        let zones = try ["Ren\u{E9}e", "Rene\u{301}e"].map { try #require(ZoneID(zoneName: $0)) }
        #expect(zones[0] != zones[1])
        #expect(Set(zones + zones).count == 2)
        let name = try #require(RecordName(rawValue: "r"))
        let records = zones.map { RecordID(recordName: name, zoneID: $0) }
        #expect(records[0] != records[1])
        #expect(RecordOrder.places(records[0], records[1]) == .after)
        #expect(RecordOrder.places(records[1], records[0]) == .before)
    }

    /// Forty letters in two spellings each make a million million names.
    ///
    /// They must not all have one hash in a dictionary.
    @Test func `spellings of one name have different hashes`() throws {
        func hash(_ value: some Hashable) -> Int {
            var hasher = Hasher()
            hasher.combine(value)
            return hasher.finalize()
        }
        let texts = ["Ren\u{E9}e", "Rene\u{301}e"]
        let users = try texts.map { try #require(UserID(rawValue: $0)) }
        #expect(hash(users[0]) != hash(users[1]))
        let zones = try texts.map { try #require(ZoneID(zoneName: $0)) }
        #expect(hash(zones[0]) != hash(zones[1]))
        let records = try texts.map { RecordID(recordName: try #require(RecordName(rawValue: $0))) }
        #expect(hash(records[0]) != hash(records[1]))
        // Equal names have equal hashes, wherever their bytes are stored.
        for text in texts + ["plain"] {
            let one = try #require(UserID(rawValue: text))
            let copy = String(decoding: Array(text.utf8), as: UTF8.self)
            let same = try #require(UserID(rawValue: copy))
            #expect(one == same && hash(one) == hash(same))
        }
    }

    @Test func `readers are compared by bytes`() throws {
        let composed = try #require(UserID(rawValue: "Ren\u{E9}e"))
        let decomposed = try #require(UserID(rawValue: "Rene\u{301}e"))
        #expect(RecordChange.names(composed, in: ["b", composed.rawValue]))
        #expect(!RecordChange.names(decomposed, in: ["b", composed.rawValue]))
        #expect(RecordChange.names(decomposed, in: ["world"]))
        #expect(RecordChange.names(nil, in: ["world"]) && !RecordChange.names(nil, in: ["b"]))
        #expect(RecordChange.isSame(["a", "b"], as: ["a", "b"]))
        #expect(!RecordChange.isSame([composed.rawValue], as: [decomposed.rawValue]))
        #expect(!RecordChange.isSame(["a"], as: ["a", "b"]))
    }

    @Test func `names have at most their maximum length`() {
        #expect(RecordName(rawValue: "") == nil)
        #expect(RecordName(rawValue: texts(1)) != nil)
        #expect(RecordName(rawValue: texts(1024)) != nil)
        #expect(RecordName(rawValue: texts(1025)) == nil)
        #expect(RecordType(rawValue: texts(255)) != nil)
        #expect(RecordType(rawValue: texts(256)) == nil)
        #expect(UserID(rawValue: texts(255)) != nil)
        #expect(UserID(rawValue: texts(256)) == nil)
        #expect(DeviceID(rawValue: texts(256)) == nil)
        #expect(SourceName(rawValue: texts(64)) != nil)
        #expect(SourceName(rawValue: texts(65)) == nil)
        #expect(ContainerID(rawValue: texts(255)) != nil)
        #expect(ContainerID(rawValue: texts(256)) == nil)
    }

    @Test func `the limit counts bytes`() {
        #expect(UserID(rawValue: String(repeating: "é", count: 127)) != nil)
        #expect(UserID(rawValue: String(repeating: "é", count: 128)) == nil)
    }

    @Test(arguments: ["a\nb", "\u{0}", "a\u{7F}", "\u{1B}[31m", "\t"])
    func `control characters are refused in names`(text: String) {
        #expect(RecordName(rawValue: text) == nil)
        #expect(RecordType(rawValue: text) == nil)
        #expect(UserID(rawValue: text) == nil)
        #expect(DeviceID(rawValue: text) == nil)
        #expect(ZoneID(zoneName: text) == nil)
    }

    @Test(arguments: ["a b", "é", "-a", ".a", "_a", "a/b", "a\u{0}", ""])
    func `a container's name has plain characters only`(text: String) {
        #expect(ContainerID(rawValue: text) == nil)
    }

    @Test func `a container's name may have dots, hyphens and underscores`() {
        #expect(
            ContainerID(rawValue: "iCloud.com.example-2.Art_1")?.description
                == "iCloud.com.example-2.Art_1")
        #expect(SourceName(rawValue: "a.b") == nil)
        #expect(SourceName(rawValue: "shop-1_x") != nil)
    }

    @Test func `identifiers are ordered by their bytes`() throws {
        let names = try ["b", "a", "é", "B", "aa"].map { try #require(RecordName(rawValue: $0)) }
        #expect(names.sorted().map(\.rawValue) == ["B", "a", "aa", "b", "é"])
    }

    @Test func `a device token is an even number of hexadecimal digits, kept in lower case`() {
        let digits = "0123456789abcdefABCDEF0123456789"
        #expect(DeviceToken(rawValue: digits)?.rawValue == digits.lowercased())
        #expect(DeviceToken(rawValue: digits.lowercased())?.rawValue == digits.lowercased())
        #expect(DeviceToken(rawValue: String(repeating: "0", count: 512)) != nil)
        for wrong in [
            "", String(digits.dropLast(2)), digits + "0", String(repeating: "0", count: 514),
            digits.replacing("F", with: "g"), digits.replacing("F0", with: "é"),
            digits.replacing("0", with: "/"), digits.replacing("9", with: ":"),
            digits.replacing("A", with: "@"), digits.replacing("a", with: "`"),
        ] {
            #expect(DeviceToken(rawValue: wrong) == nil, "\(wrong)")
        }
    }

    @Test func `the default owner is read as no owner`() throws {
        for name in ["_defaultOwner", "__defaultOwner__"] {
            let owner = UserID(rawValue: name)
            let zone = try #require(ZoneID(zoneName: "_defaultZone", ownerRecordName: owner))
            #expect(zone == .default)
            #expect(zone.ownerRecordName == nil)
        }
        let other = try #require(ZoneID(zoneName: "z", ownerRecordName: UserID(rawValue: "u")))
        #expect(other.ownerRecordName?.rawValue == "u")
    }

    @Test func `numbers on the wire are CloudKit's`() {
        #expect(DatabaseScope.allCases.map(\.wireValue) == [2, 1, 3])
        #expect(ChangeOperation.allCases.map(\.wireValue) == [1, 2, 3])
        #expect(ContainerEnvironment.production.wireValue == 1)
        #expect(ContainerEnvironment.development.wireValue == 2)
    }

    @Test func `a UUID keeps its sixteen bytes`() throws {
        let text = "85558393-c75d-4d2f-9c15-e80591b83894"
        let uuid = try #require(UUIDBytes(text))
        #expect(uuid.description == text)
        #expect(UUIDBytes(text.uppercased()) == uuid)
        #expect(UUIDBytes(bytes: uuid.bytes) == uuid)
        #expect(UUIDBytes(bytes: uuid.bytes.dropLast()) == nil)
        for wrong in ["", "85558393c75d4d2f9c15e80591b83894", text + "0", "\(text.dropLast())g"] {
            #expect(UUIDBytes(wrong) == nil)
        }
    }

    @Test func `a location is on the Earth`() {
        #expect(Location(latitude: 90, longitude: -180) != nil)
        #expect(Location(latitude: 90.0001, longitude: 0) == nil)
        #expect(Location(latitude: 0, longitude: 180.0001) == nil)
        #expect(Location(latitude: .nan, longitude: 0) == nil)
    }
}
