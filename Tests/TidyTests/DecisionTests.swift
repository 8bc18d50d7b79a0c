import Foundation
import Testing

/// The list of decisions agrees with the decision records.
@Suite struct DecisionTests {
    /// A row of the list.
    private struct Row {
        let number: Int
        let file: String
        let title: String
    }

    private static func rows() throws -> [Row] {
        try Repository.file("docs/decisions/README.md").lines.compactMap { line in
            guard
                let match = line.wholeMatch(
                    of: #/\| \[(\d+)\]\(([\w-]+\.md)\) \| (.+?)(?: \(proposed\))? \| [^|]+ \|/#),
                let number = Int(match.1)
            else { return nil }
            return Row(number: number, file: String(match.2), title: String(match.3))
        }
    }

    @Test func `the list has each record once, in the order of the numbers`() throws {
        let rows = try Self.rows()
        #expect(rows.map(\.number) == rows.map(\.number).sorted())
        let records = try Repository.files(in: "docs/decisions", suffix: ".md")
            .map { $0.path.split(separator: "/").last.map(String.init) ?? "" }
            .filter { $0 != "README.md" }
        #expect(rows.map(\.file).sorted() == records.sorted())
    }

    @Test func `the list has the titles of the records`() throws {
        for row in try Self.rows() {
            let record = try Repository.file("docs/decisions/\(row.file)")
            #expect(record.lines.first == "# \(row.number). \(row.title)")
            #expect(Int(row.file.prefix { $0 != "-" }) == row.number, "\(row.file)")
        }
    }
}
