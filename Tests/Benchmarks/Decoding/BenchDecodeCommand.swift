import ArgumentParser
import Fanout
import Foundation
import Matching
import RelayModel
import Storage

/// Measures a change's way from its text in the log to the devices that get it.
struct BenchDecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Measure the decoding of changes: text to field vector, to matches, to devices.",
        discussion: """
            Saves --subscriptions of the realistic mixture of bench match, each of one of --users \
            with a device, and decodes --changes of about 500 bytes again and again. Prints one \
            JSON object: microseconds per change (the median of --rounds passes over all changes) \
            of the one-pass decoder that the follower uses, hashing and look-up of field names \
            included, and in the same run of our own JSON parser, of parser, change and vector, \
            and of Foundation's JSONSerialization and JSONDecoder; then of decoding, matching and \
            expanding together, per change and per match.
            """)

    @Option(help: "Subscriptions in the index.")
    var subscriptions = 100_000
    @Option(help: "Users, each with a device.")
    var users = 10_000
    @Option(help: "Changes.")
    var changes = 5000
    @Option(help: "Passes over all changes.")
    var rounds = 9
    @Option(help: "The seed of the workload.")
    var seed: UInt64 = 1

    func validate() throws {
        guard subscriptions > 0, users > 0, changes > 0, rounds > 0 else {
            throw ValidationError("numbers must be positive")
        }
    }

    func run() throws {
        guard var load = BenchWorkload(shape: .g, count: subscriptions, seed: seed) else {
            throw ExitCode.failure
        }
        var state = ShardState(indexSeed: 7)
        let container = try Self.container
        try fill(&state, from: &load)
        let sent = (0..<changes).map { _ in Self.change(&load) }
        let texts = sent.map { JSONValue.object($0.storedForm).text }
        guard let index = state.index(of: container) else { throw ExitCode.failure }
        let vector = DecodedChange()
        let moment = Timestamp(seconds: 1_700_000_000)
        var figures: JSONObject = [
            "subscriptions": .integer(Int64(subscriptions)),
            "changes": .integer(Int64(changes)),
            "bytesPerChange": rounded(
                Double(texts.reduce(0) { $0 + $1.utf8.count }) / Double(texts.count)),
        ]
        figures["textToVector"] = time(texts) {
            _ = index.decode(stored: $0, appendedAt: moment, into: vector)
        }
        figures["changeToVector"] = time(sent) { index.decode($0, into: vector) }
        figures["ourParser"] = time(texts) { _ = try? JSONValue(parsing: $0) }
        figures["ourParserAndChangeToVector"] = time(texts) {
            if let change = try? LoggedChange.stored($0).change() {
                index.decode(change, into: vector)
            }
        }
        let bodies = texts.map { Data($0.utf8) }
        figures["foundationSerialization"] = time(bodies) {
            _ = try? JSONSerialization.jsonObject(with: $0)
        }
        let decoder = JSONDecoder()
        figures["foundationDecoder"] = time(bodies) {
            _ = try? decoder.decode(FoundationChange.self, from: $0)
        }
        var serials: [UInt64] = []
        figures["textToMatches"] = time(texts) {
            _ = index.matches(forStored: $0, appendedAt: moment, into: &serials)
        }
        try expand(texts, &state, container, into: &figures)
        print(JSONValue.object(figures).text)
    }

    /// Decodes, matches and expands every change.
    private func expand(
        _ texts: [String], _ state: inout ShardState, _ container: ContainerKey,
        into figures: inout JSONObject
    ) throws {
        var (matches, devices) = (0, 0)
        var fastest = Double.infinity
        for _ in 0..<rounds {
            (matches, devices) = (0, 0)
            let start = ContinuousClock.now
            for text in texts {
                let fired = try state.firedSerials(
                    by: LoggedChange.stored(text), appendedAt: Timestamp(seconds: 1_700_000_000),
                    isStale: false, in: container)
                guard let fired else { continue }
                matches += fired.serials.count
                for serial in fired.serials {
                    guard let subscription = state.subscription(serial, of: container) else {
                        continue
                    }
                    let all = state.devices(of: subscription.owner, in: container)
                    devices +=
                        DeviceExpansion.devices(
                            among: all, for: subscription, of: fired.change
                        ).count
                }
            }
            fastest = min(fastest, Self.microseconds(since: start))
        }
        figures["matchesPerChange"] = rounded(Double(matches) / Double(texts.count))
        figures["decodeMatchExpandPerChange"] = rounded(fastest / Double(texts.count))
        figures["decodeMatchExpandPerMatch"] = rounded(fastest / Double(max(1, devices)))
    }

    /// Returns the microseconds per item, as the median of all passes.
    private func time<Item>(_ items: [Item], _ body: (Item) -> Void) -> JSONValue {
        var passes: [Double] = []
        for _ in 0..<rounds {
            let start = ContinuousClock.now
            for item in items { body(item) }
            passes.append(Self.microseconds(since: start) / Double(items.count))
        }
        return rounded(passes.sorted()[rounds / 2])
    }

    private static func microseconds(since start: ContinuousClock.Instant) -> Double {
        start.duration(to: .now) / .microseconds(1)
    }

    private func rounded(_ value: Double) -> JSONValue { .number((value * 1000).rounded() / 1000) }

    // MARK: The load

    private static var container: ContainerKey {
        get throws {
            guard let name = ContainerID(rawValue: "iCloud.com.example.bench") else {
                throw ExitCode.failure
            }
            return ContainerKey(container: name, environment: .production)
        }
    }

    /// Returns a change of the mixture, with a text that makes it about 500 bytes long.
    private static func change(_ load: inout BenchWorkload) -> RecordChange {
        var change = load.change()
        change.after?.fields["description"] = .string(
            "Oil on canvas, seen from the bridge in the garden at Giverny, late in the summer.")
        return change
    }

    private func fill(_ state: inout ShardState, from load: inout BenchWorkload) throws {
        let container = try Self.container
        let loader = BenchLoadWriter(container: container, users: users)
        for number in 0..<users {
            state.insert(
                DeviceVersion(
                    serial: UInt64(number + 1), device: try loader.device(number),
                    registeredAt: Timestamp(seconds: 0), activation: LogPosition(1)))
        }
        for serial in 0..<subscriptions {
            let indexed = load.subscription(serial)
            try state.insert(
                SubscriptionVersion(
                    serial: UInt64(serial + 1),
                    subscription: try loader.subscription(serial, indexed),
                    activation: LogPosition(1)))
        }
    }
}

/// The same change for Foundation's decoder, as one would write it by hand.
private struct FoundationChange: Decodable {
    struct Image: Decodable {
        let full: Fields
    }

    struct Moment: Decodable {
        let moment: [Int64]

        enum CodingKeys: String, CodingKey {
            case moment = "$ts"
        }
    }

    struct Fields: Decodable {
        let artist: String
        let owner: String
        let genre: String
        let title: String
        let price: Double
        let score: Int64
        let date: Moment
        let flag: Bool
        let tags: [String]
        let status: String
        let lat: Double
        let lon: Double
        let description: String
    }

    let op: String
    let type: String
    let name: String
    let db: String
    let after: Image
}
