import RelayModel

/// The text of a JSON object that is written member by member, so that what has been written before
/// is taken as it is.
struct JSONObjectText {
    private var bytes: [UInt8]

    /// Begins an object.
    init() {
        bytes = [UInt8(ascii: "{")]
        bytes.reserveCapacity(480)
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

    /// Appends a list of objects; `write` appends the members of one.
    mutating func append<Element>(
        _ name: String, _ elements: [Element], _ write: (Element, inout JSONObjectText) -> Void
    ) {
        begin(name)
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            bytes.append(contentsOf: (index == 0 ? "{" : ",{").utf8)
            write(element, &self)
            bytes.append(UInt8(ascii: "}"))
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// The whole text.
    consuming func ended() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private mutating func begin(_ name: String) {
        if bytes.last != UInt8(ascii: "{") { bytes.append(UInt8(ascii: ",")) }
        JSONValue.write(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
}
