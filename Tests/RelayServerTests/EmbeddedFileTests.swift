import EmbeddedFiles
import Foundation
import Testing

@Suite struct EmbeddedFileTests {
    private static let source = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Sources/CEmbeddedFiles/CEmbeddedFiles.c").standardized

    @Test func `each file is embedded unchanged under its name`() throws {
        let text = try String(contentsOf: Self.source, encoding: .utf8)
        let paths = text.split(separator: "\n").filter { $0.hasPrefix("#embed ") }
            .map { String($0.dropFirst(8).dropLast()) }
        #expect(paths.count > 50)
        for path in paths {
            let file = Self.source.deletingLastPathComponent().appending(path: path).standardized
            let bytes = EmbeddedFile.bytes(of: file.lastPathComponent)
            #expect(try bytes == Array(Data(contentsOf: file)), "\(path)")
        }
    }

    @Test func `an unknown file name is recognised`() {
        #expect(EmbeddedFile.bytes(of: "open.json") == nil)
        #expect(EmbeddedFile.bytes(of: "") == nil)
    }
}
