// What a change says is written for its digest and for the log; a tree of JSON values for each
// would cost more than the writing.

extension FieldValue {
    /// Appends the value in its ``notation`` to `output`, as compact JSON.
    package func writeNotation(to output: inout [UInt8]) {
        switch self {
        case .string(let text): JSONValue.write(text, to: &output)
        case .timestamp(let moment):
            output.append(contentsOf: #"{"$ts":["#.utf8)
            output.append(contentsOf: String(moment.seconds).utf8)
            output.append(UInt8(ascii: ","))
            output.append(contentsOf: String(moment.nanoseconds).utf8)
            output.append(contentsOf: "]}".utf8)
        case .list(let values):
            output.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                value.writeNotation(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .map(let members) where !members.keys.contains(where: Self.isTag):
            Self.writeNotation(of: members, to: &output)
        default: notation.write(to: &output)
        }
    }

    /// Appends the fields of a record in their notation, ordered by name, as ``notation(fields:)``.
    package static func writeNotation(of fields: RecordFields, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            JSONValue.write(name, to: &output)
            output.append(UInt8(ascii: ":"))
            value.writeNotation(to: &output)
        }
        output.append(UInt8(ascii: "}"))
    }
}

/// Writes an object of which some members are no JSON values.
package struct JSONObjectWriter {
    private var output: [UInt8]

    /// Begins an object; most are changes, for which the room grows once or twice.
    package init() {
        output = []
        output.reserveCapacity(480)
        output.append(UInt8(ascii: "{"))
    }

    /// Appends members; none may be there already.
    package mutating func append(_ members: JSONObject) {
        for member in members.members {
            append(member.name) { member.value.write(to: &$0) }
        }
    }

    /// Appends a member, which may not be there already; `write` writes its value.
    package mutating func append(_ name: String, _ write: (inout [UInt8]) -> Void) {
        if output.count > 1 { output.append(UInt8(ascii: ",")) }
        JSONValue.write(name, to: &output)
        output.append(UInt8(ascii: ":"))
        write(&output)
    }

    /// Appends a member that is a text, which may not be there already.
    package mutating func append(_ name: String, text: String) {
        append(name) { JSONValue.write(text, to: &$0) }
    }

    /// Appends a member, which may not be there already.
    package mutating func append(_ name: String, value: JSONValue) {
        append(name) { value.write(to: &$0) }
    }

    /// Ends the object, in UTF-8.
    package consuming func finish() -> [UInt8] {
        output.append(UInt8(ascii: "}"))
        return output
    }
}
