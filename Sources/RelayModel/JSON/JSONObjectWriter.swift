/// A JSON object under construction, as a tree or as text, so that code that describes an object
/// serves both callers that go on working with it and callers that only send it.
package protocol JSONObjectBuilder {
    /// Appends a member; the object has none of this name yet.
    mutating func append(_ name: String, value: JSONValue)
    /// Appends a member whose value is a text; the object has none of this name yet.
    mutating func append(_ name: String, text: String)
    /// Appends a member whose value is an object, which `build` fills; the object has no member of
    /// this name yet.
    mutating func append(_ name: String, object build: (inout Self) -> Void)
}

extension JSONObject: JSONObjectBuilder {
    package mutating func append(_ name: String, value: JSONValue) {
        members.append((name: name, value: value))
    }

    package mutating func append(_ name: String, text: String) {
        append(name, value: .string(text))
    }

    package mutating func append(_ name: String, object build: (inout JSONObject) -> Void) {
        var object = JSONObject()
        build(&object)
        append(name, value: .object(object))
    }
}

/// The text of a JSON object, written member by member without a tree of values.
package struct JSONObjectWriter {
    private var output: [UInt8] = []
    /// Whether the next member follows another one.
    private var hasMember = false

    /// Begins an object.
    package init() {
        // Most objects are changes and records, for which this grows once or twice.
        output.reserveCapacity(480)
        output.append(UInt8(ascii: "{"))
    }

    /// Continues an object whose text so far is the ``begun`` of another writer: this one writes
    /// only what follows.
    package init(following begun: JSONObjectWriter) {
        hasMember = begun.hasMember
    }

    /// The text so far, without the end of the object.
    package var begun: [UInt8] { output }

    /// Appends members, of which the object has none yet.
    package mutating func append(_ members: JSONObject) {
        for member in members.members { append(member.name, value: member.value) }
    }

    /// Appends a member whose value `write` writes; the object has none of this name yet.
    package mutating func append(_ name: String, _ write: (inout [UInt8]) -> Void) {
        begin(name)
        write(&output)
    }

    /// Appends a member whose value has been written before; the object has none of this name yet.
    package mutating func append(_ name: String, written value: [UInt8]) {
        begin(name)
        output.append(contentsOf: value)
    }

    /// Ends the object and returns its text, in UTF-8.
    package consuming func finish() -> [UInt8] {
        output.append(UInt8(ascii: "}"))
        return output
    }

    private mutating func begin(_ name: String) {
        if hasMember { output.append(UInt8(ascii: ",")) }
        hasMember = true
        JSONValue.write(name, to: &output)
        output.append(UInt8(ascii: ":"))
    }
}

extension JSONObjectWriter: JSONObjectBuilder {
    package mutating func append(_ name: String, value: JSONValue) {
        begin(name)
        value.write(to: &output)
    }

    package mutating func append(_ name: String, text: String) {
        begin(name)
        JSONValue.write(text, to: &output)
    }

    package mutating func append(_ name: String, object build: (inout JSONObjectWriter) -> Void) {
        begin(name)
        output.append(UInt8(ascii: "{"))
        hasMember = false
        build(&self)
        output.append(UInt8(ascii: "}"))
        hasMember = true
    }
}
