import ArgumentParser
import Foundation
import RelayModel
import Testing

@testable import belfry

/// Errors in a file are reported with their place, and what editors add to a file (byte order
/// marks, line ends) does no harm.
@Suite struct InputFileTests {
    @Test func `the place of a JSON error is counted as editors count`() throws {
        let text = "{\r\n  \"ä\": 1,,\r\n}"
        let error = #expect(throws: ValidationError.self) {
            try JSONValue(typed: text, as: "a.json")
        }
        #expect(
            error?.message
                == "a.json: not JSON in line 2 at column 10: a member name is expected")
        let yaml = #expect(throws: ValidationError.self) {
            try JSONValue(typed: "preset: hasura\nname: shop\n", as: "a.yaml")
        }
        #expect(yaml?.message.hasPrefix("a.yaml: not JSON in line 1 at column 1: ") == true)
        let typed = #expect(throws: ValidationError.self) {
            try JSONValue(typed: "[1,", as: "--args")
        }
        #expect(typed?.message.hasPrefix("--args: not JSON at byte 3: ") == true)
    }

    @Test func `invalid UTF-8 is refused and not replaced`() throws {
        let file = try Folder.make().appending(path: "latin.txt")
        try Data([0x61, 0x0A, 0xE4, 0x0A]).write(to: file)
        let told = "the file \(file.path) is not UTF-8 text: see line 2"
        #expect(throws: CommandFailure(.input, told)) { try InputFile(file.path).text() }
        #expect(throws: CommandFailure(.input, told)) { try InputFile(file.path).secret() }
    }

    @Test func `a path with an unexpanded tilde is reported`() {
        let told = "there is no file ~/none; a shell reads ~ only where a word begins"
        #expect(throws: CommandFailure(.input, told)) { try InputFile("~/none").bytes() }
        #expect(throws: (any Error).self) { try DevCommand.parse(["--folder=~/belfry"]) }
        #expect(throws: Never.self) { try DevCommand.parse(["--folder=./~belfry"]) }
    }

    @Test func `a file without a name is said to be none`() {
        let told = "a file name is expected, but it is empty"
        #expect(throws: CommandFailure(.input, told)) { try InputFile("").bytes() }
    }

    @Test(arguments: [
        ("localhost:3000", "; did you mean http://localhost:3000?"),
        ("http:/localhost:1", "; did you mean http://localhost:1?"),
        ("https:host", "; did you mean https://host?"), ("htp://x", ""), ("", ""),
    ])
    func `a URL without its scheme is reported completely`(text: String, told: String) {
        #expect(text.meantURL == told)
    }

    @Test func `lines may end as on Windows`() async throws {
        let file = try Folder.make().appending(path: "lines.jsonl")
        try Data("\u{FEFF}{}\r\n\r\n[]".utf8).write(to: file)
        let lines = try LineReader(path: file.path).map { String(decoding: $0, as: UTF8.self) }
        #expect(lines == ["{}", "", "[]"])
        try Data([0xFF, 0xFE, 0x7B, 0x00]).write(to: file)
        #expect(throws: InputFile.utf16(file.path)) { try LineReader(path: file.path) }
        let ending = try await BuiltBelfry.run(
            ["predicate", "evaluate"],
            input: "\u{FEFF}{\"predicate\": \"a == 1\", \"record\": {\"a\": 1}}\r\n")
        #expect(ending.output == "{\"result\":true}\n", "\(ending.output)\(ending.complaint)")
    }
}
