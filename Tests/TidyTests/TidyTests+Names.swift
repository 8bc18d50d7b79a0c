import Testing

extension TidyTests {
    /// Pictures of a house that took the place of "manager"; decision 59 has the field's words for
    /// them.
    static let pictures = [
        "Bell", "Board", "Book", "Box", "Desk", "Door", "House", "Keeper", "Shelf",
    ]

    @Test func `types are named in the field's words`() {
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
