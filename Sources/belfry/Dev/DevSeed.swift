import Crypto
import FoundationEssentials
import RelayModel

/// The contents of `belfry dev --seed`: a schema, devices, subscriptions and changes.
///
/// The whole file is validated before anything is done.
struct DevSeed: Sendable {
    /// A device that is registered for a user.
    struct SeedDevice: Sendable, Hashable {
        let user: UserID
        let id: DeviceID
    }

    /// A subscription that a user saves.
    struct SeedSubscription: Sendable, Hashable {
        let user: UserID
        let database: DatabaseScope
        let subscription: JSONObject
    }

    /// The maximum number of each, and of bytes in the file.
    private static let mostDevices = 100
    private static let mostSubscriptions = 1000
    private static let mostChanges = 10_000
    private static let mostBytes = 16 * 1024 * 1024

    /// The name of the file, for messages.
    let name: String
    /// The body of the call that replaces the schema.
    let schema: JSONValue?
    let devices: [SeedDevice]
    let subscriptions: [SeedSubscription]
    /// The changes in the relay's own format.
    ///
    /// A position identifies each one as the same change in every run.
    let changes: [JSONValue]

    /// Parses a file.
    ///
    /// - Throws: ``DevFailure`` with the place of an error, and what is allowed.
    init(file path: String) throws {
        let bytes = try InputFile(path).bytes()
        guard bytes.count <= Self.mostBytes else {
            throw DevFailure("\(path): a seed has at most \(Self.mostBytes) bytes")
        }
        do {
            try self.init(JSONValue(parsing: bytes), name: path)
        } catch let error as JSONSyntaxError {
            throw DevFailure("\(path): \(error.description(in: bytes))")
        }
    }

    /// Parses the contents of a file.
    ///
    /// - Throws: ``DevFailure`` with the place of an error, and what is allowed.
    init(_ json: JSONValue, name: String) throws {
        self.name = name
        do throws(JSONContractError) {
            let seed = try JSONReader(json)
            try seed.allowOnly(["schema", "devices", "subscriptions", "changes"])
            schema = try Self.schema(seed)
            devices = try Self.list("devices", of: seed, most: Self.mostDevices, Self.device)
            subscriptions = try Self.list(
                "subscriptions", of: seed, most: Self.mostSubscriptions, Self.subscription)
            changes = try Self.list(
                "changes", of: seed, most: Self.mostChanges, Self.change
            ).enumerated().map { Self.positioned($0.element, $0.offset) }
        } catch {
            throw DevFailure("\(name): \(error)")
        }
    }

    // MARK: Reading

    private static func list<Element>(
        _ name: String, of seed: JSONReader, most: Int,
        _ read: (JSONReader) throws(JSONContractError) -> Element
    ) throws(JSONContractError) -> [Element] {
        let elements = try seed.array(name) ?? []
        guard elements.count <= most else {
            throw seed.failure(name, "at most \(most) are allowed, found \(elements.count)")
        }
        var result: [Element] = []
        for (index, element) in elements.enumerated() {
            result.append(try read(try JSONReader(element, path: "\(name)[\(index)]")))
        }
        return result
    }

    /// Returns the schema: CloudKit's schema text, or the JSON of `belfry schema export --format
    /// json`.
    private static func schema(_ seed: JSONReader) throws(JSONContractError) -> JSONValue? {
        switch seed.value("schema") {
        case nil: nil
        case .string(let text)?: ["text": .string(text)]
        case .object(let object)?: .object(object)
        default:
            throw seed.failure(
                "schema", "a text (DEFINE SCHEMA …) or an object with recordTypes is expected")
        }
    }

    private static func device(_ reader: JSONReader) throws(JSONContractError) -> SeedDevice {
        try reader.allowOnly(["user", "deviceID"])
        return SeedDevice(
            user: try reader.require("user", try reader.identifier("user")),
            id: try reader.require("deviceID", try reader.identifier("deviceID")))
    }

    private static func subscription(
        _ reader: JSONReader
    ) throws(JSONContractError) -> SeedSubscription {
        try reader.allowOnly(["user", "database", "subscription"])
        let inner = try reader.require("subscription", try reader.reader("subscription"))
        return SeedSubscription(
            user: try reader.require("user", try reader.identifier("user")),
            database: try reader.choice("database") ?? .public, subscription: inner.object)
    }

    private static func change(_ reader: JSONReader) throws(JSONContractError) -> JSONObject {
        let _: ChangeOperation = try reader.require(
            "operation", try reader.choice("operation"))
        let _: RecordType = try reader.require("recordType", try reader.identifier("recordType"))
        let _: RecordName = try reader.require("recordName", try reader.identifier("recordName"))
        return reader.object
    }

    /// Returns the change with a position derived from its contents and its index.
    private static func positioned(_ change: JSONObject, _ index: Int) -> JSONValue {
        guard change["position"] == nil else { return .object(change) }
        var positioned = change
        let digest = SHA256.hash(data: JSONValue.object(change).utf8)
        positioned["position"] = .string(
            "seed-\(index)-\(Hexadecimal.encode(Array(digest.prefix(8))))")
        return .object(positioned)
    }
}
