import FoundationEssentials
package import RelayModel
import Storage

/// The state of a shard at a position, as it goes into a snapshot.
package struct StateImage: Sendable {
    /// The log position of the state.
    package let position: LogPosition
    private let lastSubscription: UInt64
    private let lastDevice: UInt64
    private let containers: [(container: ContainerKey, image: ContainerImage)]

    /// Takes an image of `state`.
    ///
    /// No change can be matched meanwhile.
    ///
    /// - Throws: What the encoder of an index throws, which would be a programming error.
    init(_ state: ShardState, at position: LogPosition) throws {
        self.position = position
        let parts = try state.parts()
        lastSubscription = parts.lastSubscription
        lastDevice = parts.lastDevice
        containers = parts.containers
    }

    /// The number of bytes of all parts.
    package var size: Int {
        containers.reduce(0) { size, entry in
            size + entry.image.index.count + entry.image.updateRules.count
                + entry.image.subscriptions.count + entry.image.devices.count
        }
    }

    /// Returns the sections of the file, for a snapshot with the given identity.
    func sections(identity: UUIDBytes, store: UUIDBytes) -> [[UInt8]] {
        let head = Head(
            format: Head.current, identity: identity.description, store: store.description,
            position: position.rawValue, lastSubscription: lastSubscription,
            lastDevice: lastDevice,
            containers: containers.map {
                Head.Place(
                    container: $0.container.container.rawValue,
                    environment: $0.container.environment.rawValue)
            })
        return [head.bytes]
            + containers.flatMap { entry in
                let image = entry.image
                return [image.index, image.updateRules, image.subscriptions, image.devices]
            }
    }

    /// The first section.
    private struct Head: Codable {
        /// The version of the format.
        ///
        /// It is raised whenever the meaning of the sections changes.
        static let current = 2

        struct Place: Codable {
            var container: String
            var environment: String
        }

        var format: Int
        var identity: String
        var store: String
        var position: UInt64
        var lastSubscription: UInt64
        var lastDevice: UInt64
        var containers: [Place]

        var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }
    }

    /// Reads the state of a snapshot from its file, which blocks.
    ///
    /// - Throws: `SnapshotFailure`, `ImageDamage`, or what reading a part throws, if the file is
    ///   not the snapshot that `record` names.
    static func load(
        _ state: inout ShardState, from file: SnapshotFile.Reading, _ record: SnapshotRecord,
        store: UUIDBytes
    ) throws {
        guard let first = try file.next(),
            let head = try? JSONDecoder().decode(Head.self, from: Data(first))
        else { throw ImageDamage("its head is missing or cannot be read") }
        guard head.format == Head.current else {
            throw ImageDamage("it was written in another format version")
        }
        guard head.store == store.description, head.identity == record.identity.description,
            head.position == record.position.rawValue
        else { throw ImageDamage("it belongs to another store or is outdated") }
        var containers: [ContainerKey: ContainerState] = [:]
        for place in head.containers {
            guard let name = ContainerID(rawValue: place.container),
                let environment = ContainerEnvironment(rawValue: place.environment)
            else { throw ImageDamage("a container has no name") }
            let key = ContainerKey(container: name, environment: environment)
            containers[key] = try ContainerState(container: key, badges: state.badges) {
                guard let section = try file.next() else {
                    throw ImageDamage("a section is missing")
                }
                return section
            }
        }
        guard try file.next() == nil else {
            throw ImageDamage("it has more sections than its head lists")
        }
        state.load(
            containers, lastSubscription: head.lastSubscription, lastDevice: head.lastDevice)
    }
}
