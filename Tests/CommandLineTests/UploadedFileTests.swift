import RelayModel
import Testing

@testable import belfry

/// A file that is uploaded after a first line, which holds the question.
@Suite struct UploadedFileTests {
    @Test(arguments: [
        ("line 2: recordName: is required", "f.ndjson:1: recordName: is required"),
        ("line 1001: it is longer than 4 bytes", "f.ndjson:1000: it is longer than 4 bytes"),
        // The first line is the question and not part of the file.
        ("line 1: it is longer than 4 bytes", "line 1: it is longer than 4 bytes"),
        ("subscription: is required", "subscription: is required"),
        ("line of another kind: no", "line of another kind: no"),
    ]) func `a refusal names the line of the file`(reason: String, told: String) {
        let file = UploadedFile(firstLine: ["user": "ann"], path: "f.ndjson")
        #expect(file.placed(reason) == told)
    }
}
