import Foundation

/// Which folders of a room use which others, judged by the names that their files declare and
/// mention.
///
/// The graph reads words, not Swift. A name that several folders declare is ignored, and
/// initialisers have no name. So some uses go unseen, but every reported use exists.
struct FolderGraph {
    /// One folder's use of another.
    struct Use: CustomStringConvertible {
        let from: String
        let to: String
        /// The name that shows the use, and the file that mentions it.
        let name: String
        let file: String

        var description: String { "\(from) uses \(to): \(name) in \(file)" }
    }

    private(set) var folders: Set<String> = []
    /// One use for each pair of folders: the first in the order of the files.
    private(set) var uses: [Use] = []

    init(room: String, of repository: [Repository.File]) {
        let sources = repository.map { Source($0, in: room) }
        folders = Set(sources.compactMap(\.folder))
        let owners = Self.owners(in: sources)
        var seen: Set<String> = []
        for source in sources {
            guard let folder = source.folder else { continue }
            for name in source.names.sorted() {
                guard let owner = owners[name], owner != folder,
                    seen.insert("\(folder) \(owner)").inserted
                else { continue }
                uses.append(Use(from: folder, to: owner, name: name, file: source.path))
            }
        }
    }

    /// The uses that are part of a cycle.
    ///
    /// It repeatedly removes the folders that use no other folder, and then those that no other
    /// folder uses. The uses that are left form cycles.
    var circles: [Use] {
        var left = uses
        while true {
            let using = Set(left.map(\.from))
            let used = Set(left.map(\.to))
            let kept = left.filter { using.contains($0.to) && used.contains($0.from) }
            if kept.count == left.count { return left }
            left = kept
        }
    }

    /// Returns the folder of each name that only one folder declares.
    ///
    /// A type or function is listed by its name. A member that extends a type of another folder is
    /// listed by its name after a point.
    private static func owners(in sources: [Source]) -> [String: String] {
        var folders: [String: Set<String>] = [:]
        var shared: Set<String> = []
        for source in sources {
            for name in source.globals.union(source.members.map { ".\($0)" }) {
                folders[name, default: []].insert(source.folder ?? "")
            }
        }
        // A member identifies its folder only if no other file of the project declares its name.
        for source in sources {
            for name in source.declared where folders[".\(name)"] != nil {
                if folders[".\(name)"] != [source.folder ?? ""] { shared.insert(".\(name)") }
            }
        }
        return folders.compactMapValues { $0.count == 1 ? $0.first : nil }
            .filter { !shared.contains($0.key) && !$0.value.isEmpty }
    }
}

extension FolderGraph {
    /// The names that one file declares and mentions.
    private struct Source {
        let path: String
        /// The folder below the room; `nil` for a file of another room.
        let folder: String?
        /// Types and functions at the outermost level.
        var globals: Set<String> = []
        /// Members of extensions, which may be of other folders' types.
        var members: Set<String> = []
        /// Everything that is declared, at whatever level.
        var declared: Set<String> = []
        /// The words that the file mentions and does not declare itself; a word after a point keeps
        /// the point.
        var names: Set<String> = []

        /// The keywords before the name of a declaration.
        private static let introducers: Set<String> = [
            "struct", "enum", "class", "actor", "protocol", "typealias", "func", "let", "var",
            "case",
        ]

        init(_ file: Repository.File, in room: String) {
            let parts = file.path.split(separator: "/").map(String.init)
            path = parts.dropFirst(2).joined(separator: "/")
            folder = file.room == room ? (parts.count > 3 ? parts[2] : "the room itself") : nil
            var isExtension = false
            for (depth, words) in Self.known[file.path] ?? Self.lines(of: file) {
                if depth == 0, words[0].allSatisfy({ $0.isLetter || $0 == "@" }) {
                    isExtension = words.contains("extension")
                }
                declare(words, depth: depth, isExtension: isExtension)
                if folder != nil { names.formUnion(words) }
            }
            names.subtract(declared)
        }

        /// The lines of all sources, read once for the graphs of all rooms.
        private static let known = Dictionary(
            uniqueKeysWithValues: Repository.sources.map { ($0.path, lines(of: $0)) })

        /// Returns the nesting depth and the words of each line that has words.
        private static func lines(of file: Repository.File) -> [(depth: Int, words: [String])] {
            file.lines.filter { !isComment($0) }.compactMap { line in
                let words = words(of: line)
                return words.isEmpty ? nil : (line.utf8.prefix { $0 == 0x20 }.count, words)
            }
        }

        private mutating func declare(_ words: [String], depth: Int, isExtension: Bool) {
            guard let index = words.firstIndex(where: Self.introducers.contains),
                index + 1 < words.count
            else { return }
            let name = words[index + 1]
            declared.insert(name)
            guard folder != nil, !words.contains("private") else { return }
            switch depth {
            case 0: globals.insert(name)
            case 4 where isExtension: members.insert(name)
            default: return
            }
        }

        /// Returns the words of a line, without those in string literals and comments.
        ///
        /// A word after a point keeps the point.
        private static func words(of line: String) -> [String] {
            var words: [String] = []
            var word: [UInt8] = []
            var isQuoted = false
            var before: UInt8 = 0
            for byte in line.utf8 {
                if byte == UInt8(ascii: "\""), before != UInt8(ascii: "\\") { isQuoted.toggle() }
                let isLetter =
                    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "_") || byte >= 0x80
                if isLetter, !isQuoted {
                    if word.isEmpty, before == UInt8(ascii: ".") { word.append(before) }
                    word.append(byte)
                } else if !word.isEmpty {
                    words.append(String(decoding: word, as: UTF8.self))
                    word = []
                }
                if byte == UInt8(ascii: "/"), before == byte, !isQuoted { break }
                before = byte
            }
            if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self)) }
            return words
        }
    }
}
