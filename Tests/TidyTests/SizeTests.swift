import Foundation
import Testing

/// Limits for the length of lines, functions and files.
@Suite struct SizeTests {
    static let maximumLine = 100
    static let maximumFunction = 70
    static let maximumFile = 400
    static let maximumTestFile = 600

    @Test func `lines end at 100 columns`() {
        var finds: [String] = []
        for file in Repository.swift {
            // A table in a comment and a text that a test quotes cannot be broken.
            for (number, line) in file.numbered
            where line.count > Self.maximumLine && !line.has("/// |") && !isQuoted(line, file) {
                finds.append(place(file, number, "\(line.count) columns"))
            }
        }
        #expect(finds == [])
    }

    private func isQuoted(_ line: String, _ file: Repository.File) -> Bool {
        file.path.hasPrefix("Tests/") && line.has("\"")
    }

    @Test func `files end at 400 lines, tests at 600`() {
        let finds = Repository.swift.filter { file in
            let limit = file.path.hasPrefix("Tests/") ? Self.maximumTestFile : Self.maximumFile
            return file.lines.count > limit + 1
        }
        #expect(finds.map { "\($0.path): \($0.lines.count) lines" } == [])
    }

    /// The formatter puts a function's closing brace alone on a line, at the indentation of its
    /// first line.
    @Test func `functions end at 70 lines`() {
        var finds: [String] = []
        for file in Repository.swift {
            for (number, line) in file.numbered
            where isFunction(line) && !line.hasSuffix("}") {
                let depth = line.prefix { $0 == " " }
                // A requirement of a protocol has no body: the enclosing declaration ends first.
                let end = file.lines[number...].firstIndex { line in
                    line == depth + "}" || (!line.isEmpty && !line.hasPrefix(depth))
                }
                guard let end, file.lines[end] == depth + "}",
                    end + 1 - number >= Self.maximumFunction
                else { continue }
                finds.append(place(file, number, "\(end + 2 - number) lines"))
            }
        }
        #expect(finds == [])
    }

    private func isFunction(_ line: String) -> Bool {
        let words = line.trimmingCharacters(in: .whitespaces)
            .split(whereSeparator: { $0 == " " || $0 == "(" || $0 == "<" || $0 == "?" })
        let modifiers: Set<Substring> = [
            "public", "package", "internal", "private", "static", "mutating", "final", "override",
            "consuming", "borrowing", "nonisolated", "convenience", "@Test",
        ]
        guard let word = words.first(where: { !modifiers.contains($0) }) else { return false }
        return ["func", "init", "subscript", "deinit"].contains(word)
    }

    @Test func `a markdown file has one title`() throws {
        let documents = try Repository.documents
        var finds: [String] = []
        for file in documents {
            var isCode = false
            var titles = 0
            for line in file.lines {
                if line.hasPrefix("```") { isCode.toggle() }
                if !isCode, line.hasPrefix("# ") { titles += 1 }
            }
            if titles != 1 { finds.append("\(file.path): \(titles) titles") }
        }
        #expect(finds == [])
    }

    /// A link that leads nowhere is worse than none.
    @Test func `links between documents resolve`() throws {
        let documents = try Repository.documents
        var finds: [String] = []
        for file in documents {
            let folder = Repository.top.appending(path: file.path).deletingLastPathComponent()
            for (number, line) in file.numbered {
                guard line.has("](") else { continue }
                for link in line.matches(of: #/\]\((?!https?:|#)([^)#\s]+)/#) {
                    let target = folder.appending(path: String(link.1)).path
                    if !FileManager.default.fileExists(atPath: target) {
                        finds.append(place(file, number, String(link.1)))
                    }
                }
            }
        }
        #expect(finds == [])
    }

    @Test func `links to a section resolve`() throws {
        let documents = try Repository.documents
        var finds: [String] = []
        for file in documents {
            let own = Repository.top.appending(path: file.path)
            for (number, line) in file.numbered {
                guard line.has("](") else { continue }
                for link in line.matches(of: #/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/#) {
                    let target =
                        link.1.isEmpty
                        ? own : own.deletingLastPathComponent().appending(path: String(link.1))
                    guard target.pathExtension == "md",
                        let text = try? String(contentsOf: target, encoding: .utf8)
                    else { continue }
                    if !Self.sections(of: text).contains(String(link.2)) {
                        finds.append(place(file, number, "\(link.1)#\(link.2)"))
                    }
                }
            }
        }
        #expect(finds == [])
    }

    /// Returns the anchors of a document's sections, as links name them.
    private static func sections(of text: String) -> Set<String> {
        var sections: Set<String> = []
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, line.hasPrefix("#") else { continue }
            let title = line.drop { $0 == "#" }.drop { $0 == " " }
                .replacing(#/\]\([^)]*\)/#, with: "").lowercased()
            let kept = title.filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
            sections.insert(kept.replacing(" ", with: "-"))
        }
        return sections
    }

    /// The files in `deploy/secrets`, which `deploy/compose.yaml` asks the operator to create, open
    /// the store.
    @Test(arguments: [".gitignore", "deploy/Dockerfile.dockerignore"])
    func `secrets beside the composition are in no commit and no image`(path: String) throws {
        let file = Repository.top.appending(path: path)
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        #expect(lines.contains { $0.drop { $0 == "/" }.hasPrefix("deploy/secrets") })
    }

    /// A page must not name a file that has moved.
    ///
    /// Decision records and the changelog describe their own day, and are exempt.
    @Test func `files and folders that documents name exist`() throws {
        let documents = try Repository.documents.filter {
            !$0.path.contains("decisions/") && !$0.path.hasSuffix("changelog.md")
        }
        var finds: [String] = []
        for file in documents {
            for (number, line) in file.numbered {
                for name in line.matches(
                    of: #/`((?:Sources|Tests|Migrations|docs|deploy|\.ci)\/[\w+.\/-]+)/#)
                {
                    let target = Repository.top.appending(path: String(name.1)).path
                    if !FileManager.default.fileExists(atPath: target) {
                        finds.append(place(file, number, String(name.1)))
                    }
                }
            }
        }
        #expect(finds == [])
    }

    /// Nothing holds a promise beside which stands a suite that does not exist.
    @Test func `suites that documents name exist`() throws {
        var known = Set(
            try FileManager.default.contentsOfDirectory(
                atPath: Repository.top.appending(path: "Tests").path))
        for file in Repository.swift where file.path.hasPrefix("Tests/") {
            for line in file.lines where line.has("Tests") || line.has("Conformance") {
                for type in line.matches(of: #/(?:struct|enum|class|extension) (\w+)/#) {
                    known.insert(String(type.1))
                }
            }
        }
        var finds: [String] = []
        for file in try Repository.documents
        where !file.path.contains("decisions/") && !file.path.hasSuffix("changelog.md") {
            for (number, line) in file.numbered {
                for suite in line.matches(of: #/\b[A-Z][A-Za-z0-9]*(?:Tests|Conformance)\b/#)
                where !known.contains(String(suite.output)) {
                    finds.append(place(file, number, String(suite.output)))
                }
            }
        }
        #expect(finds == [])
    }
}
