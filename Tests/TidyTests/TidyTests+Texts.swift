import Testing

extension TidyTests {
    /// Files whose texts are all the relay's own, so that they may be processed by letters.
    static let lettered = ["Sources/RelayServer/Configuration/ConfigurationKey.swift"]

    /// A `Character` is a sign with the combining marks after it, which does not equal the sign
    /// alone.
    ///
    /// So code that escapes by characters lets `"` through before U+0301, while shells, SQL, HTML
    /// and other readers of bytes still treat it as a quotation mark.
    @Test func `texts are escaped by scalars`() {
        var finds: [String] = []
        for file in Repository.sources
        where file.room != "GatewaySimulator" && !Self.lettered.contains(file.path) {
            for (number, line) in file.numbered where !isComment(line) {
                if line.has(".replacing(\""), line.has(", with: ") {
                    finds.append(place(file, number, "replacing(_:with:): use replacing(_:by:)"))
                }
                if line.has("for character in "), !line.has("unicodeScalars") {
                    finds.append(place(file, number, "for character: go through unicodeScalars"))
                }
            }
        }
        #expect(finds == [])
    }

    /// Without `retryAfter`, clients conclude that a repetition will not succeed (docs/errors.md),
    /// and give up on a request that they should repeat.
    @Test func `a refusal that asks for a retry says when`() {
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered where !isComment(line) && line.has("APIError(") {
                let call = Self.call(at: number, in: file)
                guard call.has(".tryAgainLater,") || call.has(".throttled,") else { continue }
                if !call.has("retryAfter:") {
                    finds.append(place(file, number, "an error to come again without retryAfter"))
                }
            }
        }
        #expect(finds == [])
    }

    /// Returns the lines of a call that begins at line `number`, up to its closing parenthesis.
    private static func call(at number: Int, in file: Repository.File) -> String {
        var text = ""
        var depth = 0
        for line in file.lines[(number - 1)...].prefix(16) {
            text += line
            for byte in line.utf8 {
                if byte == UInt8(ascii: "(") { depth += 1 }
                if byte == UInt8(ascii: ")") { depth -= 1 }
            }
            if depth <= 0 { break }
        }
        return text
    }
}
