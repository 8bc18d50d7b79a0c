import RelayModel

extension FormatPrinter {
    mutating func print(_ value: FieldValue) {
        switch value {
        case .null: output += "nil"
        case .bool(let flag):
            output += rules == .apple ? (flag ? "1" : "0") : (flag ? "TRUE" : "FALSE")
        case .integer(let number): output += "\(number)"
        case .double(let number):
            if number.isFinite {
                output += "\(number)"
            } else {
                printCast("\"\(number.isNaN ? "nan" : number < 0 ? "-inf" : "inf")\"", .number)
            }
        case .string(let text): printText(text)
        case .timestamp(let moment): printCast(Self.seconds(of: moment), .date)
        case .bytes(let bytes): printCast("\"\(Base64.encode(bytes))\"", .data)
        case .reference(let reference): print(reference.recordID)
        case .location(let place): printCast("{\(place.latitude), \(place.longitude)}", .location)
        case .uuid(let uuid): printCast("\"\(uuid)\"", .uuid)
        case .objectID(let bytes): printCast("\"\(Hexadecimal.encode(bytes))\"", .objectID)
        case .list(let values): printList(values)
        case .set(let values):
            let texts = values.map { value in
                var inner = FormatPrinter(rules: rules)
                inner.print(value)
                return inner.output
            }
            printCast("{\(texts.sorted().joined(separator: ", "))}", .set)
        case .map(let members):
            output += "CAST("
            printList(
                members.sorted { $0.key < $1.key }.flatMap { [.string($0.key), $0.value] })
            output += ", \"\(RecordPredicate.CastType.dictionary.rawValue)\")"
        }
    }

    private mutating func printCast(_ content: String, _ type: RecordPredicate.CastType) {
        output += "CAST(\(content), \"\(type.rawValue)\")"
    }

    private mutating func printList(_ values: [FieldValue]) {
        output += "{"
        for (index, value) in values.enumerated() {
            if index > 0 { output += ", " }
            print(value)
        }
        output += "}"
    }

    private mutating func print(_ recordID: RecordID) {
        var parts = [recordID.recordName.rawValue]
        if recordID.zoneID != .default {
            parts.append(recordID.zoneID.zoneName)
            if let owner = recordID.zoneID.ownerRecordName { parts.append(owner.rawValue) }
        }
        output += "CAST("
        if parts.count == 1 {
            printText(parts[0])
        } else {
            printList(parts.map(FieldValue.string))
        }
        output += ", \"\(RecordPredicate.CastType.reference.rawValue)\")"
    }

    /// Returns seconds since 2001 with six decimals, or with nine if six are not exact.
    private static func seconds(of moment: Timestamp) -> String {
        var seconds = Int128(moment.seconds) - Int128(Timestamp.secondsTo2001)
        var nanoseconds = Int64(moment.nanoseconds)
        var sign = ""
        if seconds < 0 {
            sign = "-"
            seconds = -seconds
            if nanoseconds > 0 {
                seconds -= 1
                nanoseconds = 1_000_000_000 - nanoseconds
            }
        }
        let isMicro = nanoseconds.isMultiple(of: 1000)
        let fraction = String(isMicro ? nanoseconds / 1000 : nanoseconds)
        let zeros = String(repeating: "0", count: (isMicro ? 6 : 9) - fraction.utf8.count)
        return "\(sign)\(seconds).\(zeros)\(fraction)"
    }

    /// Writes a text between double quotes.
    mutating func printText(_ text: String) {
        output += "\""
        defer { output += "\"" }
        // Most texts have nothing to escape. Appending them as a whole is many times faster.
        guard text.utf8.contains(where: Self.needsEscape) else { return output += text }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": output += "\\\""
            case "\\": output += "\\\\"
            case "\n": output += "\\n"
            case "\r": output += "\\r"
            case "\t": output += "\\t"
            case "\u{00}"..."\u{1F}", "\u{7F}":
                let code = String(scalar.value, radix: 16, uppercase: true)
                output += "\\u" + String(repeating: "0", count: 4 - code.utf8.count) + code
            default: output.unicodeScalars.append(scalar)
            }
        }
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}
