import Testing

extension TidyTests {
    /// The rooms with folders.
    ///
    /// Their folders use each other in one direction only, so that a reader of one folder knows
    /// what lies below it.
    static let layered: [String] = {
        let inside = Repository.sources.filter { $0.path.split(separator: "/").count > 3 }
        return Set(inside.compactMap(\.room)).sorted()
    }()

    @Test func `every room with folders is checked`() {
        #expect(Self.layered.contains("RelayServer"))
    }

    @Test(arguments: layered) func `the folders of a room have no cycle`(room: String) {
        let graph = FolderGraph(room: room, of: Repository.sources)
        #expect(graph.folders.count > 1)
        #expect(graph.circles.map(\.description) == [])
    }

    @Test func `a cycle of folders is detected`() {
        func file(_ path: String, _ lines: String...) -> Repository.File {
            Repository.File(path: "Sources/Example/\(path)", lines: lines)
        }
        let cellar = file("Cellar/Barrel.swift", "struct Barrel {", "    let size: Int", "}")
        let attic = file("Attic/Trunk.swift", "struct Trunk {", "    let barrel: Barrel", "}")
        #expect(FolderGraph(room: "Example", of: [cellar, attic]).circles.isEmpty)
        let stairs = file(
            "Cellar/Barrel+Trunk.swift", "extension Barrel {",
            "    var shape: Int { trunk.fullness }", "}")
        let lid = file("Attic/Trunk+Lid.swift", "extension Int {", "    var fullness: Int", "}")
        let graph = FolderGraph(room: "Example", of: [cellar, attic, stairs, lid])
        #expect(
            graph.circles.map(\.description) == [
                "Attic uses Cellar: Barrel in Attic/Trunk.swift",
                "Cellar uses Attic: .fullness in Cellar/Barrel+Trunk.swift",
            ])
    }
}
