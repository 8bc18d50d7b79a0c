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
}
