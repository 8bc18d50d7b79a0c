import RelayModel
import Storage

/// The devices of a container's users, by user and by serial.
///
/// The format of a record is
/// ```
/// | serial 8 | next of the user 8 | activation 8 | registered 8 + 4 | template 4
/// | lengths of owner, ID and token 2 + 2 + 2 | owner | ID | token |
/// ```
/// where the template is the device without its ID, its owner and its token. The records of users
/// whose names have equal hashes form one list. Code that walks a list compares the names.
struct PackedDevices: Sendable {
    /// The first place of a list, and the number of its records.
    private struct Head: Sendable {
        var place: Int
        var count: Int
    }

    private var records: PackedRecords<Device>
    private var heads: [Int: Head] = [:]
    /// The largest number of devices that one user has had since the start.
    private(set) var mostOfOne = 0

    private enum Offset {
        static let next = 8
        static let activation = 16
        static let seconds = 24
        static let nanoseconds = 32
        static let template = 36
        static let ownerLength = 40
        static let idLength = 42
        static let tokenLength = 44
        static let owner = 46
    }

    /// The value of `next` that ends a list.
    private static let none = UInt64.max

    /// Returns the key of a user's list.
    ///
    /// It hashes the bytes of the name, because another spelling is another user.
    private static func hash(_ name: String) -> Int {
        var hasher = Hasher()
        hasher.combine(name: name)
        return hasher.finalize()
    }

    /// Creates the devices of a container that has none.
    init(container: ContainerKey) {
        records = PackedRecords(
            templates: TemplateTable(
                write: { JSONValue.object($0.templateForm).text },
                read: { try Device(templateForm: try JSONValue(stored: $0), of: container) }),
            templateOffset: Offset.template)
    }

    /// The number of device versions.
    var count: Int { records.count }

    /// Returns the devices of a user, by ascending serial.
    mutating func devices(of user: UserID) -> [DeviceVersion] {
        var versions: [DeviceVersion] = []
        var place = heads[Self.hash(user.rawValue)]?.place
        while let here = place {
            if let version = version(at: here, of: user) { versions.append(version) }
            place = next(here)
        }
        if versions.count > 1 { versions.sort { $0.serial < $1.serial } }
        return versions
    }

    /// Returns the number of devices of a user, including those of users whose names have the same
    /// hash.
    func count(of user: String) -> Int { heads[Self.hash(user)]?.count ?? 0 }

    /// Returns whether a user has a device with this ID, without decoding the others.
    func hasDevice(_ id: DeviceID, of user: UserID) -> Bool {
        let (owner, name) = (user.rawValue, id.rawValue)
        var place = heads[Self.hash(owner)]?.place
        while let here = place {
            let ownerLength = length(Offset.ownerLength, here)
            if ownerLength == owner.utf8.count, length(Offset.idLength, here) == name.utf8.count,
                records.heap.has(owner, Offset.owner, of: here),
                records.heap.has(name, Offset.owner + ownerLength, of: here)
            {
                return true
            }
            place = next(here)
        }
        return false
    }

    private func next(_ place: Int) -> Int? {
        let next = records.heap.word(Offset.next, of: place) as UInt64
        return next == Self.none ? nil : Int(next)
    }

    private mutating func version(at place: Int, of user: UserID) -> DeviceVersion? {
        let ownerLength = length(Offset.ownerLength, place)
        guard ownerLength == user.rawValue.utf8.count,
            records.heap.has(user.rawValue, Offset.owner, of: place),
            var device = records.template(at: place),
            let token = DeviceToken(rawValue: token(at: place)),
            let id = DeviceID(rawValue: id(at: place))
        else { return nil }
        device.id = id
        device.owner = user
        device.token = token
        return DeviceVersion(
            serial: records.heap.word(0, of: place), device: device,
            registeredAt: Timestamp(
                seconds: records.heap.word(Offset.seconds, of: place),
                nanoseconds: records.heap.word(Offset.nanoseconds, of: place)),
            activation: LogPosition(records.heap.word(Offset.activation, of: place)))
    }

    private func length(_ offset: Int, _ place: Int) -> Int {
        Int(records.heap.word(offset, of: place) as UInt16)
    }

    private func owner(at place: Int) -> String {
        records.text(Offset.owner, length(Offset.ownerLength, place), of: place)
    }

    private func id(at place: Int) -> String {
        records.text(
            Offset.owner + length(Offset.ownerLength, place), length(Offset.idLength, place),
            of: place)
    }

    private func token(at place: Int) -> String {
        records.text(
            Offset.owner + length(Offset.ownerLength, place) + length(Offset.idLength, place),
            length(Offset.tokenLength, place), of: place)
    }

    // MARK: Edits

    /// Adds a version, replacing one with the same serial.
    mutating func insert(_ version: DeviceVersion) {
        remove(version.serial)
        let device = version.device
        let user = Self.hash(device.owner.rawValue)
        var record = ImageWriter()
        record.append(version.serial)
        let before = heads[user]
        record.append(before.map { UInt64($0.place) } ?? Self.none)
        record.append(version.activation.rawValue)
        record.append(version.registeredAt.seconds)
        record.append(version.registeredAt.nanoseconds)
        record.append(records.number(of: device.template))
        let texts = [device.owner.rawValue, device.id.rawValue, device.token.rawValue]
        for text in texts { record.append(UInt16(text.utf8.count)) }
        for text in texts { record.append(raw: text.utf8) }
        put(Head(place: records.append(record, serial: version.serial), count: 1), before, user)
    }

    /// Makes a list begin with a record, followed by the list `before`.
    private mutating func put(_ first: Head, _ before: Head?, _ user: Int) {
        let count = first.count + (before?.count ?? 0)
        heads[user] = Head(place: first.place, count: count)
        mostOfOne = max(mostOfOne, count)
    }

    /// Returns the user and the device ID of the version with this serial, or `nil` if there is
    /// none.
    func holder(_ serial: UInt64) -> DeviceHolder? {
        guard let place = records.places[serial], let owner = UserID(rawValue: owner(at: place)),
            let id = DeviceID(rawValue: id(at: place))
        else { return nil }
        return DeviceHolder(owner: owner, device: id)
    }

    /// Removes a version.
    mutating func remove(_ serial: UInt64) {
        guard let place = records.places[serial] else { return }
        unlink(place, of: Self.hash(owner(at: place)))
        if records.remove(serial) { linkAll() }
    }

    private mutating func unlink(_ place: Int, of user: Int) {
        let following = next(place)
        guard var head = heads[user] else { return }
        head.count -= 1
        guard head.place != place else {
            heads[user] = following.map { Head(place: $0, count: head.count) }
            return
        }
        heads[user] = head
        var here = head.place
        while let after = next(here), after != place { here = after }
        link(here, to: following)
    }

    private mutating func link(_ place: Int, to next: Int?) {
        records.set(next.map(UInt64.init) ?? Self.none, Offset.next, of: place)
    }

    /// Links the records of each user again, after all of them have moved.
    private mutating func linkAll() {
        heads.removeAll(keepingCapacity: true)
        heads.reserveCapacity(records.count)
        var found: [Int] = []
        records.heap.forEach { place, _ in found.append(place) }
        for place in found {
            let user = Self.hash(owner(at: place))
            let before = heads[user]
            link(place, to: before?.place)
            put(Head(place: place, count: 1), before, user)
        }
    }

    // MARK: Snapshots

    /// The devices as bytes for a snapshot.
    var image: [UInt8] { records.image() }

    /// Loads the devices from a snapshot.
    ///
    /// - Throws: `ImageDamage` if the bytes are not those of ``image``.
    init(container: ContainerKey, image bytes: [UInt8]) throws {
        self.init(container: container)
        _ = try records.load(bytes, of: "devices") { heap, place, length in
            let lengths = [Offset.ownerLength, Offset.idLength, Offset.tokenLength]
            return length >= Offset.owner
                && length
                    == lengths.reduce(Offset.owner) {
                        $0 + Int(heap.word($1, of: place) as UInt16)
                    }
                && (0..<1_000_000_000).contains(heap.word(Offset.nanoseconds, of: place) as Int32)
        }
        linkAll()
    }
}

extension Device {
    /// What the device has in common with others: everything but the ID, the owner and the token.
    var template: Device {
        var template = self
        template.id = Self.templateID
        template.owner = Self.templateOwner
        template.token = Self.templateToken
        return template
    }

    private static let templateID = constant("template", DeviceID.init(rawValue:))
    private static let templateOwner = constant("template", UserID.init(rawValue:))
    private static let templateToken = constant(
        String(repeating: "0", count: 64), DeviceToken.init(rawValue:))

    private static func constant<Name>(_ text: String, _ make: (String) -> Name?) -> Name {
        guard let name = make(text) else { preconditionFailure("\(text) must be a name") }
        return name
    }

    /// The form of a template in a snapshot.
    var templateForm: JSONObject {
        DeviceVersion(
            serial: 0, device: self, registeredAt: Timestamp(seconds: 0), activation: .start
        ).storedForm
    }

    /// Reads a template from its form.
    ///
    /// - Throws: What `DeviceVersion(storedForm:container:)` throws.
    init(templateForm json: JSONValue, of container: ContainerKey) throws {
        self = try DeviceVersion(storedForm: try JSONReader(json), container: container).device
            .template
    }
}
