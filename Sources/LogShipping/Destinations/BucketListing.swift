/// One page of the names in a bucket, as `ListObjectsV2` answers, and the codes of its errors.
///
/// The elements that are needed are looked for by name: no element that S3 documents has one of
/// them within another of the same name.
struct BucketListing {
    let keys: [String]
    /// What the next page is asked for with; `nil` at the end.
    let continuation: String?

    /// Reads the answer; `nil` if it is none.
    init?(_ text: String) {
        guard text.contains("<ListBucketResult") else { return nil }
        keys = Self.elements("Key", in: text).compactMap(Self.unescaped)
        let isCut = Self.elements("IsTruncated", in: text).first == "true"
        let token = Self.elements("NextContinuationToken", in: text).first
        continuation = isCut ? token.flatMap { Self.unescaped($0) } : nil
        // Half of a list would be taken for the whole.
        guard !isCut || continuation != nil else { return nil }
    }

    /// The code and the message of an error; `nil` if it says none.
    static func error(_ text: String) -> String? {
        guard let code = elements("Code", in: text).first else { return nil }
        let message = elements("Message", in: text).first.flatMap(unescaped)
        let words = ([String(code)] + (message.map { [$0] } ?? [])).joined(separator: ": ")
        // It goes to the log: no more than a line. One letter may have any number of scalars.
        let line = words.unicodeScalars.filter { !Character($0).isNewline }
        return String(String.UnicodeScalarView(line.prefix(300)))
    }

    private static func elements(_ name: String, in text: String) -> [Substring] {
        var found: [Substring] = []
        var rest = text[...]
        while let start = rest.firstRange(of: "<\(name)>"),
            let end = rest[start.upperBound...].firstRange(of: "</\(name)>")
        {
            found.append(rest[start.upperBound..<end.lowerBound])
            rest = rest[end.upperBound...]
        }
        return found
    }

    private static func unescaped(_ text: some StringProtocol) -> String? {
        var result = ""
        var rest = Substring(text)
        while let start = rest.firstIndex(of: "&") {
            guard let end = rest[start...].firstIndex(of: ";") else { return nil }
            result += rest[..<start]
            let entity = rest[rest.index(after: start)..<end]
            switch entity {
            case "amp": result += "&"
            case "lt": result += "<"
            case "gt": result += ">"
            case "quot": result += "\""
            case "apos": result += "'"
            default:
                guard let character = character(entity) else { return nil }
                result.append(character)
            }
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    /// A character by its number, as `#39` or `#x27`.
    private static func character(_ entity: Substring) -> Character? {
        guard entity.hasPrefix("#") else { return nil }
        let number = entity.dropFirst()
        let code =
            number.hasPrefix("x") ? UInt32(number.dropFirst(), radix: 16) : UInt32(number)
        return code.flatMap { Unicode.Scalar($0) }.map { Character($0) }
    }
}
