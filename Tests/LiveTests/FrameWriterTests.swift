import RelayModel
import RelayTestKit
import SimulationKit
import Testing

@testable import Live

/// The content of a frame, and the readers to whom it may go.
@Suite struct FrameWriterTests {
    @Test(arguments: [true, false])
    func `a reader who could not read a record is not told which fields changed`(
        couldRead: Bool
    ) throws {
        var change = Fixtures.change(.update, "r", fields: ["price": .integer(5)])
        change.changedKeys = ["price"]
        let frame = try #require(
            FrameWriter(writing: PlainForm()).change(
                change, at: LogPosition(1), appendedAt: Fixtures.moment,
                of: LiveScenario.query(.changes), 1, nil, showsBefore: couldRead))
        let json = try JSONValue(parsing: frame.bytes)
        #expect(json.value(at: ["operation"]) == "update")
        #expect((json.value(at: ["changedKeys"]) != nil) == couldRead)
    }
}
