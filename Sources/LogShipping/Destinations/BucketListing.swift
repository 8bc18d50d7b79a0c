/// One page of a bucket's names, as `ListObjectsV2` returns it.
///
/// Also parses S3's error codes.
///
/// Elements are found by name alone. That is safe because no element that S3 documents contains
/// another element of the same name.
struct BucketListing {
    let keys: [String]
    /// The token that requests the next page; `nil` on the last page.
    let continuation: String?

    /// Parses the answer; returns `nil` if it is not a list.
    init?(_ text: String) {
        guard text.contains("<ListBucketResult") else { return nil }
        keys = Self.elements("Key", in: text).compactMap(Self.unescaped)
        let isCut = Self.elements("IsTruncated", in: text).first == "true"
        let token = Self.elements("NextContinuationToken", in: text).first
        continuation = isCut ? token.flatMap { Self.unescaped($0) } : nil
        // A truncated list without a token would be taken for a complete one.
        guard !isCut || continuation != nil else { return nil }
    }

    /// Returns the code and the message of an error; `nil` if the text has none.
    static func error(_ text: String) -> String? {
        guard let code = elements("Code", in: text).first else { return nil }
        let message = elements("Message", in: text).first.flatMap(unescaped)
        let words = ([String(code)] + (message.map { [$0] } ?? [])).joined(separator: ": ")
        // The text goes to the log, so it is cut to one line. It is cut by scalars, because one
        // character may have any number of them.
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

    /// Returns the character of a numeric reference such as `#39` or `#x27`.
    private static func character(_ entity: Substring) -> Character? {
        guard entity.hasPrefix("#") else { return nil }
        let number = entity.dropFirst()
        let code =
            number.hasPrefix("x") ? UInt32(number.dropFirst(), radix: 16) : UInt32(number)
        return code.flatMap { Unicode.Scalar($0) }.map { Character($0) }
    }
}
