import Foundation
import Testing

extension TidyTests {
    /// A page that a reader cannot open says nothing.
    @Test func `every page that the code names is in the repository`() {
        var finds: [String] = []
        for file in Repository.swift where !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.numbered {
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

    /// "Creates a key." before an initialiser is what the reader sees without it.
    @Test func `comments on initialisers say more than that something is made`() {
        let bare = #/^ *\/\/\/ (?:Creates|Names)(?: a| an| the)?(?: [\w'-]+){1,3}\.$/#
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered where line.contains(bare) {
                let next = file.lines[min(number, file.lines.count - 1)]
                if next.contains(#/^ *(?:@\w+ |\w+ )*init\b/#) {
                    finds.append(place(file, number, line.trimmingCharacters(in: .whitespaces)))
                }
            }
        }
        #expect(finds == [])
    }
}
