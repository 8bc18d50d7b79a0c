import Testing

extension TidyTests {
    /// Where a text is the relay's own, and its letters are meant.
    static let lettered = ["Sources/RelayServer/Configuration/ConfigurationKey.swift"]

    /// As a `Character` a sign and the marks behind it are one letter, and another one than the
    /// sign: what is escaped by letters lets `"` through before U+0301, which shells, SQL, HTML and
    /// whoever else reads the bytes obey all the same.
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

    /// Without `retryAfter` clients take it that a repetition does not succeed, as docs/errors.md
    /// says, and give up what they were told to bring again.
    @Test func `who is told to come again is told when`() {
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

    /// The lines of a call that begins at one of them, until its parentheses are closed.
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
