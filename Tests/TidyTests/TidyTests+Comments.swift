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
}
