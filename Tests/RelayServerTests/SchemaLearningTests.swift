import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// How many fields and types a development container learns from records.
@Suite struct SchemaLearningTests {
    private static func fields(_ count: Int) -> RecordFields {
        var fields: RecordFields = [:]
        for number in 0..<count { fields["f\(number)"] = .integer(1) }
        return fields
    }

    private static func type(_ name: String) -> RecordType { Fixtures.identifier(name) }

    /// Returns why nothing is learned from a record; `nil` if it is.
    private static func refusal(
        _ inference: inout SchemaInference, _ name: String, _ count: Int
    ) -> APIError? {
        do throws(APIError) {
            _ = try inference.admit(type(name), fields: fields(count))
            return nil
        } catch {
            return error
        }
    }

    @Test func `the number of fields learned from a request is limited`() {
        var inference = SchemaInference(ContainerSchema(), environment: .development)
        let first = Self.refusal(&inference, "A", 900)
        #expect(first == nil)
        let tooMany = Self.refusal(&inference, "B", 101)
        #expect(tooMany?.code == .quotaExceeded)
        let again = Self.refusal(&inference, "A", 901)
        let last = Self.refusal(&inference, "B", 99)
        let known = Self.refusal(&inference, "A", 901)
        #expect(again == nil && last == nil && known == nil)
        #expect(inference.additions.map(\.fields.count) == [901, 99])
        let more = Self.refusal(&inference, "B", 100)
        #expect(more?.code == .quotaExceeded)
    }

    @Test func `the number of fields learned by a container is limited, from webhooks too`() {
        var schema = ContainerSchema()
        for number in 0..<20 {
            var inference = SchemaInference(schema, environment: .development)
            let refusal = Self.refusal(&inference, "T\(number)", 1000)
            #expect(refusal == nil)
            for type in inference.additions { schema.recordTypes[type.name] = type }
        }
        var full = SchemaInference(schema, environment: .development)
        let known = Self.refusal(&full, "T1", 1000)
        #expect(known == nil)
        let new = Self.refusal(&full, "U", 1)
        #expect(new?.code == .quotaExceeded)
        var change = RecordChange(
            .create, of: Self.type("V"), RecordID(recordName: Fixtures.identifier("v")))
        change.after = RecordImage(Self.fields(1))
        full.observe(change)
        #expect(full.additions.isEmpty)
    }

    @Test func `as much is learned from a webhook as from a request`() {
        var inference = SchemaInference(ContainerSchema(), environment: .development)
        for number in 0..<5 {
            var change = RecordChange(
                .create, of: Self.type("V\(number)"),
                RecordID(recordName: Fixtures.identifier("v")))
            change.after = RecordImage(Self.fields(300))
            inference.observe(change)
        }
        #expect(inference.additions.map(\.fields.count) == [300, 300, 300])
    }
}
