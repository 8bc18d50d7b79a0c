import Foundation
import RelayModel
import Testing

@testable import ChangeSources

/// Runs the examples of the documents.
@Suite struct DocumentTests {
    @Test(arguments: ["change-sources", "mariadb", "mongodb"])
    func `every example of a document is read as the document says`(document: String) throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/\(document).md")
        var source: ChangeSource?
        var headers: WebhookHeaders = [:]
        var body = ""
        var presets: Set<SourcePreset> = []
        for block in blocks(try String(contentsOf: url, encoding: .utf8)) {
            switch block.info {
            case "json source":
                source = try ChangeSource(json: JSONValue(parsing: block.text))
                headers = [:]
            case "http headers":
                headers = [:]
                for line in block.text.split(separator: "\n") {
                    let parts = line.split(separator: ":", maxSplits: 1)
                    headers.append(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
                }
            case "json webhook": body = block.text
            case "text read":
                let source = try #require(source)
                presets.insert(source.preset)
                let lines = decoded(source, webhook(body, headers: headers))
                #expect(lines == block.text.split(separator: "\n").map(String.init))
            default: break
            }
        }
        if document == "change-sources" { #expect(presets == Set(SourcePreset.allCases)) }
        #expect(!presets.isEmpty)
    }

    private func blocks(_ text: String) -> [(info: String, text: String)] {
        var blocks: [(info: String, text: String)] = []
        var isOpen = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                if !isOpen { blocks.append((String(line.dropFirst(3)), "")) }
                isOpen.toggle()
            } else if isOpen {
                blocks[blocks.count - 1].text += "\(line)\n"
            }
        }
        return blocks.map { ($0.info, $0.text.trimmingCharacters(in: .newlines)) }
    }
}
