import Testing

extension TidyTests {
    /// The full Foundation adds 10 MB to the executable (docs/decisions/0101).
    ///
    /// On Apple's systems there is nothing else, so the public libraries may import it there.
    @Test func `no source imports all of Foundation`() {
        var finds: [String] = []
        for file in Repository.sources {
            var isOther = false
            for (number, line) in file.numbered {
                if line.has("#if ") { isOther = line.has("canImport(Darwin)") }
                if line.has("#else") { isOther.toggle() }
                if line.has("#endif") { isOther = false }
                let words = line.split(separator: " ")
                guard words.dropLast().last == "import", !isOther,
                    ["Foundation", "CoreFoundation", "FoundationNetworking"].contains(words.last)
                else { continue }
                finds.append(place(file, number, "FoundationEssentials does without \(line)"))
            }
        }
        #expect(finds == [])
    }

    /// Pictures of a house that once replaced "manager" in names.
    ///
    /// Decision 59 has the established words that replaced them in turn.
    static let pictures = [
        "Bell", "Board", "Book", "Box", "Desk", "Door", "House", "Keeper", "Shelf",
    ]

    @Test func `type names use established words`() {
        let keywords = ["struct ", "class ", "enum ", "actor ", "protocol "]
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered
            where keywords.contains(where: { line.has($0) }) && !isComment(line) {
                let declaration = #/\b(?:struct|class|enum|actor|protocol) (\w+)/#
                guard let name = line.firstMatch(of: declaration)?.1,
                    Self.pictures.contains(where: { name.hasSuffix($0) })
                else { continue }
                finds.append(place(file, number, String(name)))
            }
        }
        #expect(finds == [])
    }
}
