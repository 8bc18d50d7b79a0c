import RelayModel

/// The text of a JSON object that is written member by member, so that what has been written before
/// is taken as it is.
struct JSONObjectText {
    private var bytes: [UInt8] = []
    /// Whether a member stands before the next one.
    private var hasMember = false

    /// Begins an object.
    init() {
        bytes.reserveCapacity(480)
        bytes.append(UInt8(ascii: "{"))
    }

    /// Goes on with an object of which `begun` is the beginning.
    init(following begun: JSONObjectText) {
        hasMember = begun.hasMember
    }

    /// Appends a member.
    mutating func append(_ name: String, _ value: JSONValue) {
        begin(name)
        value.write(to: &bytes)
    }

    /// Appends a member whose value has been written.
    mutating func append(_ name: String, written value: [UInt8]) {
        begin(name)
        bytes.append(contentsOf: value)
    }

    /// What has been written, for more to follow.
    var begun: [UInt8] { bytes }

    /// What has been written, with the end of the object.
    consuming func ended() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private mutating func begin(_ name: String) {
        if hasMember { bytes.append(UInt8(ascii: ",")) }
        hasMember = true
        JSONValue.write(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
}
