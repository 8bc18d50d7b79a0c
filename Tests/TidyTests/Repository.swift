import Foundation

/// The files of the repository as lines; the rules of the project read them.
struct Repository {
    /// One file of text.
    struct File {
        /// The path, relative to the top of the repository.
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

    /// Returns all files below `folder` whose names end with `suffix`, in a stable order.
    static func files(in folder: String, suffix: String) throws -> [File] {
        let root = top.appending(path: folder).path
        guard let walker = FileManager.default.enumerator(atPath: root) else { return [] }
        return try walker.compactMap { $0 as? String }
            .filter { $0.hasSuffix(suffix) && !$0.hasPrefix(".build") }
            .sorted()
            .map { try file("\(folder)/\($0)") }
    }

    /// Returns one file.
    static func file(_ path: String) throws -> File {
        let text = try String(contentsOf: top.appending(path: path), encoding: .utf8)
        return File(path: path, lines: text.components(separatedBy: "\n"))
    }

    /// The documents that people read: the pages at the top of the repository, and those of the
    /// documentation.
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
    /// Returns whether the text contains `part`, compared byte by byte.
    ///
    /// The standard library's `contains` compares letters, and would take minutes over all lines of
    /// the project.
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

/// Returns a finding of a rule as text that points at its place.
func place(_ file: Repository.File, _ number: Int, _ what: String) -> String {
    "\(file.path):\(number): \(what)"
}
