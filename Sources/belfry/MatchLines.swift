import Fanout
import FoundationEssentials
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel

/// The lines of a file, read in pieces, so that the file may be larger than the memory.
struct LineReader: Sequence, IteratorProtocol {
    private let file: FileStream
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false

    /// - Throws: ``CommandFailure`` if the file cannot be read. Opening a folder succeeds, so the
    ///   first piece is read here.
    init(path: String) throws {
        do {
            file = try FileStream(reading: path)
            buffer = try file.read(upTo: Self.pieceBytes)
        } catch {
            throw InputFile.failure(error, path)
        }
        guard !InputFile.isUTF16(buffer) else { throw InputFile.utf16(path) }
        if buffer.starts(with: InputFile.mark) { start = InputFile.mark.count }
    }

    private static let pieceBytes = 1 << 20

    mutating func next() -> [UInt8]? {
        while true {
            if let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return Self.line(buffer[start..<end])
            }
            if isAtEnd {
                defer { start = buffer.count }
                return start < buffer.count ? Self.line(buffer[start...]) : nil
            }
            refill()
        }
    }

    /// Returns a line without a carriage return at its end, as Windows writes it.
    private static func line(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        Array(bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes)
    }

    private mutating func refill() {
        buffer.removeFirst(start)
        start = 0
        let piece = try? file.read(upTo: Self.pieceBytes)
        if let piece, !piece.isEmpty { buffer.append(contentsOf: piece) } else { isAtEnd = true }
    }
}

/// The ID of a subscription in a file: an integer or a text.
///
/// Integers sort before texts.
enum LineID: Comparable, Sendable {
    case number(Int64)
    case text(String)

    init(_ reader: JSONReader) throws {
        switch reader.object["id"] {
        case .integer(let number): self = .number(number)
        case .string(let text): self = .text(text)
        default: throw reader.failure("id", "an integer or a string is expected")
        }
    }

    static func < (left: LineID, right: LineID) -> Bool {
        switch (left, right) {
        case (.number(let a), .number(let b)): a < b
        case (.text(let a), .text(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
        case (.number, .text): true
        case (.text, .number): false
        }
    }

    var json: JSONValue {
        switch self {
        case .number(let number): .integer(number)
        case .text(let text): .string(text)
        }
    }
}

/// An invalid line of a file.
struct MatchLineError: Error, CustomStringConvertible {
    let place: String
    let reason: String

    var description: String { "\(place): \(reason)" }
}

/// A subscription in a file: `{"id", "recordType", "predicate", "args", "firesOn", "zone"}`, and
/// optionally `"database"` and `"owner"`.
struct SubscriptionLine {
    let id: LineID
    var subscription: IndexedSubscription

    init(_ bytes: [UInt8], _ place: String) throws {
        let reader = try JSONReader(JSONValue(parsing: bytes))
        try reader.allowOnly([
            "id", "recordType", "predicate", "rql", "where", "filterBy", "args", "firesOn", "zone",
            "database", "owner",
        ])
        id = try LineID(reader)
        let recordType: RecordType? = try reader.identifier("recordType")
        let database = try MatchWords.database(reader)
        let owner = try MatchWords.owner(reader) ?? MatchWords.nobody(place)
        subscription = IndexedSubscription(
            serial: 0, database: database, owner: owner,
            zoneID: try MatchWords.zone(reader), recordType: recordType,
            firesOn: try MatchWords.firesOn(reader),
            // The meaning that the relay gives to a saved condition.
            predicate: try Self.predicate(reader)?.meant(implying: database.impliedOwner(owner)))
    }

    private static func predicate(_ reader: JSONReader) throws -> RecordPredicate? {
        let forms = PredicateForm.allCases.filter { reader.value($0.rawValue) != nil }
        guard let form = forms.first, let source = reader.value(form.rawValue) else { return nil }
        guard forms.count == 1 else {
            throw reader.failure(forms[1].rawValue, "only one form of the condition is allowed")
        }
        var arguments: [FieldValue] = []
        for (index, argument) in (try reader.array("args") ?? []).enumerated() {
            arguments.append(try FieldValue(argument: argument, path: "args[\(index)]"))
        }
        let predicate = try RecordPredicate.parse(
            source, dialect: form.dialect, arguments: arguments)
        // Compiling the condition here makes an invalid pattern an error of this line, not of the
        // whole run.
        _ = try PreparedPredicate(predicate)
        return predicate
    }
}

/// A change in a file: `{"id", "recordType", "operation", "before", "after"}`, and optionally
/// `"recordName"`, `"zone"`, `"database"`, `"owner"`, `"user"`, `"at"` and `"partial"`.
struct ChangeLine {
    let id: JSONValue
    let change: RecordChange

    init(_ bytes: [UInt8], _ place: String) throws {
        let reader = try JSONReader(JSONValue(parsing: bytes))
        id = reader.object["id"] ?? .null
        let recordType: RecordType = try reader.require(
            "recordType", try reader.identifier("recordType"))
        let word = try reader.require("operation", try reader.string("operation"))
        guard let operation = ChangeOperation(rawValue: word) else {
            throw reader.failure("operation", "create, update or delete is expected")
        }
        guard let name = try reader.identifier("recordName") ?? RecordName(rawValue: "record")
        else {
            throw MatchLineError(place: place, reason: "no record name")
        }
        var change = RecordChange(
            operation, of: recordType,
            RecordID(recordName: name, zoneID: try MatchWords.zone(reader) ?? .default))
        change.database = try MatchWords.database(reader)
        change.owner = try MatchWords.owner(reader)
        change.origin.userID = try reader.identifier("user")
        if let moment = reader.value("at"),
            case .timestamp(let at) = try FieldValue(notation: moment, path: "at")
        {
            change.occurredAt = at
        }
        let isPartial = try reader.bool("partial") ?? false
        change.before = try Self.image("before", reader, isPartial)
        change.after = try Self.image("after", reader, isPartial)
        self.change = change
    }

    private static func image(
        _ name: String, _ reader: JSONReader, _ isPartial: Bool
    ) throws -> RecordImage? {
        guard let value = reader.value(name) else { return nil }
        let object = try JSONReader(value, path: name).object
        return RecordImage(
            try FieldValue.fields(notation: object, path: name),
            completeness: isPartial ? .partial : .full)
    }
}

/// The members that subscriptions and changes share.
enum MatchWords {
    static func database(_ reader: JSONReader) throws -> DatabaseScope {
        guard let word = try reader.string("database") else { return .public }
        guard let scope = DatabaseScope(rawValue: word) else {
            throw reader.failure("database", "public, private or shared is expected")
        }
        return scope
    }

    static func owner(_ reader: JSONReader) throws -> UserID? {
        try reader.identifier("owner")
    }

    static func nobody(_ place: String) throws -> UserID {
        guard let owner = UserID(rawValue: "nobody") else {
            throw MatchLineError(place: place, reason: "no owner")
        }
        return owner
    }

    static func zone(_ reader: JSONReader) throws -> ZoneID? {
        guard let name = try reader.string("zone") else { return nil }
        guard let zone = ZoneID(zoneName: name) else {
            throw reader.failure("zone", "not a zone name")
        }
        return zone
    }

    static func firesOn(_ reader: JSONReader) throws -> FiresOn {
        guard let words = try reader.strings("firesOn") else { return .all }
        var firesOn = FiresOn()
        for word in words {
            guard let operation = ChangeOperation(rawValue: word) else {
                throw reader.failure("firesOn", "create, update or delete is expected")
            }
            firesOn.insert(FiresOn(operation))
        }
        return firesOn
    }
}
