// A change is written as bytes, for its digest and for the log. Building a tree of JSON values for
// each change would cost more than the writing itself.

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
