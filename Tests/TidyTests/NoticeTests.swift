import Foundation
import Testing

/// The NOTICE file lists everything that the program contains, as its licences require of those who
/// distribute it.
@Suite struct NoticeTests {
    /// Returns the names of the packages whose addresses a file of the package manager mentions.
    private static func packages(in file: Repository.File) -> Set<String> {
        Set(
            file.lines.flatMap { line in
                line.matches(of: #/"https:\/\/github\.com\/[\w.-]+\/([\w.-]+?)(?:\.git)?"/#)
                    .map { String($0.1) }
            })
    }

    @Test func `the notice lists every package of the manifest with its licence`() throws {
        let needed = Self.packages(in: try Repository.file("Package.swift"))
        #expect(needed.count > 10)
        let noticed = Set(
            try Repository.file("NOTICE").lines.filter { $0.hasPrefix("  ") }
                .compactMap { line in
                    let words = line.split(separator: " ")
                    return words.count > 1 ? words.first.map(String.init) : nil
                })
        #expect(needed.subtracting(noticed) == [])
    }

    @Test func `the notice lists every resolved package, also indirect ones`() throws {
        let path = "Package.resolved"
        let place = Repository.top.appending(path: path).path
        guard FileManager.default.fileExists(atPath: place) else { return }
        let notice = try Repository.file("NOTICE").lines
        let resolved = Self.packages(in: try Repository.file(path))
        let missing = resolved.filter { name in
            !notice.contains { $0.hasPrefix("  \(name) ") }
        }
        #expect(missing.sorted() == [])
    }
}
