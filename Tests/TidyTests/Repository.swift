import Foundation

/// The repository as files of lines; the rules of the project read it.
struct Repository {
    /// One file of text.
    struct File {
        /// The path from the top of the repository.
        let path: String
        /// The lines, without line ends.
        let lines: [String]

        /// The lines with their numbers, from 1.
        var numbered: [(number: Int, line: String)] {
            lines.enumerated().map { ($0.offset + 1, $0.element) }
        }

        /// The room: the folder below `Sources`.
        var room: String? {
            let parts = path.split(separator: "/")
            return parts.first == "Sources" && parts.count > 2 ? String(parts[1]) : nil
        }
    }

    static let top = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// All files below `folder` whose names end with `suffix`, in a stable order.
    static func files(in folder: String, suffix: String) throws -> [File] {
        let root = top.appending(path: folder).path
        guard let walker = FileManager.default.enumerator(atPath: root) else { return [] }
        return try walker.compactMap { $0 as? String }
            .filter { $0.hasSuffix(suffix) && !$0.hasPrefix(".build") }
            .sorted()
            .map { try file("\(folder)/\($0)") }
    }

    /// One file.
    static func file(_ path: String) throws -> File {
        let text = try String(contentsOf: top.appending(path: path), encoding: .utf8)
        return File(path: path, lines: text.components(separatedBy: "\n"))
    }

    /// What people read: the pages at the top, and those of the documentation.
    static var documents: [File] {
        get throws {
            try ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(file)
                + files(in: "docs", suffix: ".md")
        }
    }

    static let swift: [File] = {
        let folders = ["Sources", "Tests", "Migrations"]
        return folders.flatMap { (try? files(in: $0, suffix: ".swift")) ?? [] }
    }()

    static var sources: [File] { swift.filter { $0.path.hasPrefix("Sources/") } }
}

extension StringProtocol {
    /// Whether a text has another one in it, byte by byte: the library's own `contains` looks for
    /// letters, and takes minutes over all lines of the project.
    func has(_ part: String) -> Bool {
        let wanted = Array(part.utf8)
        guard let first = wanted.first else { return true }
        return utf8.withContiguousStorageIfAvailable { bytes in
            guard bytes.count >= wanted.count else { return false }
            for start in 0...(bytes.count - wanted.count) where bytes[start] == first {
                if bytes[start...].starts(with: wanted) { return true }
            }
            return false
        } ?? String(self).has(part)
    }
}

/// What a rule found, as text that points at the place.
func place(_ file: Repository.File, _ number: Int, _ what: String) -> String {
    "\(file.path):\(number): \(what)"
}
