import Foundation

/// Which folders of a room use which, as their files show: who names what another one declares.
///
/// It reads words, not Swift. A name that several folders declare says nothing, and initialisers
/// have no name; so a use may go unseen, but what is reported is there.
struct FolderGraph {
    /// One folder's use of another.
    struct Use: CustomStringConvertible {
        let from: String
        let to: String
        /// The name that shows it, and the file that says the name.
        let name: String
        let file: String

        var description: String { "\(from) uses \(to): \(name) in \(file)" }
    }

    private(set) var folders: Set<String> = []
    /// One use for each pair of folders, the first one in the order of files.
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

    /// The uses that belong to a circle: those that are left when whatever uses nothing, and then
    /// whatever is used by nothing, has been taken away as often as there is such a folder.
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

    /// The folder of each name that only one folder declares: a type or function by its name, a
    /// member of somebody else's type by its name after a point.
    private static func owners(in sources: [Source]) -> [String: String] {
        var folders: [String: Set<String>] = [:]
        var shared: Set<String> = []
        for source in sources {
            for name in source.globals.union(source.members.map { ".\($0)" }) {
                folders[name, default: []].insert(source.folder ?? "")
            }
        }
        // A member is somebody's own only if no other file of the project declares its name.
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
    /// What one file declares and names.
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
        /// The words, and the words after a point with it, that the file does not declare itself.
        var names: Set<String> = []

        /// The words before the name of what is declared.
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

        /// How deep each line stands, and its words; without lines that have none.
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

        /// The words of a line, with the point before those that have one; without what stands
        /// between quotes or in a comment.
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
