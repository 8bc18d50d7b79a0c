extension JSONValue {
    /// This value as compact JSON text.
    public var text: String {
        String(decoding: utf8, as: UTF8.self)
    }

    /// This value as compact JSON, in UTF-8.
    public var utf8: [UInt8] {
        var output: [UInt8] = []
        // Most of these values are changes; the reservation lets the array grow once or twice
        // instead of eight times.
        output.reserveCapacity(480)
        write(to: &output)
        return output
    }

    /// Appends this value to `output` as compact JSON.
    public func write(to output: inout [UInt8]) {
        switch self {
        case .null: output.append(contentsOf: "null".utf8)
        case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): output.append(contentsOf: String(value).utf8)
        case .number(let value): output.append(contentsOf: Self.digits(of: value).utf8)
        case .string(let value): Self.write(value, to: &output)
        case .array(let values): Self.write(values, to: &output)
        case .object(let object): object.write(to: &output)
        }
    }

    /// A double with an integral value keeps its `.0`, so that it is read back as a double.
    private static func digits(of value: Double) -> String {
        value.isFinite ? "\(value)" : "null"
    }

    private static func write(_ values: [JSONValue], to output: inout [UInt8]) {
        output.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            value.write(to: &output)
        }
        output.append(UInt8(ascii: "]"))
    }

    /// Appends `text` to `output` as a JSON string, with the quotes.
    ///
    /// Runs that need no escape are copied whole; most texts are one run.
    public static func write(_ text: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        let isWritten: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { utf8 in
            var start = 0
            while start < utf8.count {
                let end = unsafe utf8.endOfPlainJSONText(from: start)
                unsafe output.append(contentsOf: utf8[start..<end])
                if end < utf8.count { unsafe escape(utf8[end], to: &output) }
                start = end + 1
            }
        }
        if isWritten == nil {
            for byte in text.utf8 {
                if byte.isPlainInJSONText { output.append(byte) } else { escape(byte, to: &output) }
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    private static func escape(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case ..<0x20:
            output.append(contentsOf: "u00".utf8)
            output.append(hexadecimalDigit(byte >> 4))
            output.append(hexadecimalDigit(byte & 15))
        default: output.append(byte)
        }
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x61 + value - 10
    }
}

extension [JSONValue] {
    /// The values in the order of their JSON texts.
    ///
    /// A set has no order of its own, so its elements are written in this one.
    ///
    /// - Complexity: O(*n* log *n*) comparisons; each text is written once.
    package var orderedByText: [JSONValue] {
        let texts = map(\.text)
        return indices.sorted { texts[$0] < texts[$1] }.map { self[$0] }
    }
}

extension JSONObject {
    /// Appends this object to `output` as compact JSON.
    public func write(to output: inout [UInt8]) {
        output.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            JSONValue.write(member.name, to: &output)
            output.append(UInt8(ascii: ":"))
            member.value.write(to: &output)
        }
        output.append(UInt8(ascii: "}"))
    }
}
