import Foundation
import Testing

extension TidyTests {
    /// A page that the reader cannot open is no help.
    @Test func `every page that the code names is in the repository`() {
        var finds: [String] = []
        for file in Repository.swift where !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.numbered where line.has("docs/") || line.has("design §") {
                for match in line.matches(of: #/\bdocs/[\w/.-]*\w/#) {
                    let path = Repository.top.appending(path: String(match.output)).path
                    if !FileManager.default.fileExists(atPath: path) {
                        finds.append(place(file, number, String(match.output)))
                    }
                }
                if line.contains(#/\bdesign §/#) {
                    finds.append(place(file, number, "the design: name a page of docs/"))
                }
            }
        }
        #expect(finds == [])
    }

    /// "Creates a key." before an initialiser says no more than the initialiser itself.
    @Test func `comments on initialisers say more than that something is created`() {
        let bare = #/^ *\/\/\/ (?:Creates|Names)(?: a| an| the)?(?: [\w'-]+){1,3}\.$/#
        let saysMore = #/\b(?:empty|optional|without|zeros?)\b/#
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered
            where line.has("///") && line.contains(bare) && !line.contains(saysMore) {
                let next = file.lines[min(number, file.lines.count - 1)]
                if next.contains(#/^ *(?:@\w+ |\w+ )*init\b/#) {
                    finds.append(place(file, number, line.trimmingCharacters(in: .whitespaces)))
                }
            }
        }
        #expect(finds == [])
    }

    /// An example that no test runs soon becomes wrong.
    @Test func `examples in comments are run by a test, line by line`() {
        let tests = Repository.swift.filter { $0.path.hasPrefix("Tests/") }
            .map { $0.lines.map { $0.trimmingCharacters(in: .whitespaces) } }
        var examples = 0
        var finds: [String] = []
        for file in Repository.sources {
            for (number, lines) in Self.examples(in: file.lines) {
                examples += 1
                let isRun = tests.contains { test in
                    var rest = lines[...]
                    for line in test where line == rest.first { rest.removeFirst() }
                    return rest.isEmpty
                }
                if !isRun { finds.append(place(file, number, lines[0])) }
            }
        }
        #expect(examples >= 11)
        #expect(finds == [])
    }

    /// Returns the Swift examples in the comments of a file: the line where each begins, and its
    /// code.
    private static func examples(in lines: [String]) -> [(Int, [String])] {
        var found: [(Int, [String])] = []
        var isInside = false
        for (index, line) in lines.enumerated() {
            let text = line.trimmingCharacters(in: .whitespaces)
            if text == "/// ```swift" {
                isInside = true
                found.append((index + 1, []))
            } else if text == "/// ```" {
                isInside = false
            } else if isInside {
                let code = text.dropFirst(3).trimmingCharacters(in: .whitespaces)
                if !code.hasPrefix("//") { found[found.count - 1].1.append(code) }
            }
        }
        return found
    }
}
