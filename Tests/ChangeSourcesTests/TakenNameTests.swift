import RelayModel
import Testing

@testable import ChangeSources

/// Rows that give up a name which another row of the same transaction takes.
@Suite struct TakenNameTests {
    private static let body = #"""
        [{"operation": "update", "schema": "public", "table": "t", "key": ["id"],
          "before": {"id": 2, "by": "ann"}, "after": {"id": 3, "by": "ann"},
          "formerTakenBy": {"id": 2, "by": "ann"}, "position": "p/1"},
         {"operation": "delete", "schema": "public", "table": "t", "key": ["id"],
          "before": {"id": 2, "by": "ann"}, "formerTakenBy": {"id": 2, "by": "bob"},
          "position": "p/2"}]
        """#

    @Test(arguments: [
        (
            "{}",
            [
                #"create t/3 after {"by":"ann","id":3} key position p/1"#,
                "ignored: the record's name now belongs to another row",
            ]
        ),
        (
            #"{"owner": {"column": "by"}}"#,
            [
                #"create t/3 private ann after {"by":"ann","id":3} key position p/1"#,
                #"delete t/2 private ann before {"by":"ann","id":2} key position p/2"#,
            ]
        ),
        (
            #"{"key": "by"}"#,
            [
                #"update t/ann before {"by":"ann","id":2} after {"by":"ann","id":3} "#
                    + "key position p/1",
                #"delete t/ann before {"by":"ann","id":2} key position p/2"#,
            ]
        ),
    ])
    func `a record ends with its row, unless another row has taken its name`(
        mapping: String, changes: [String]
    ) throws {
        let source = try source("postgres", mapping: mapping)
        #expect(decoded(source, webhook(Self.body)) == changes)
        guard case .array(let rows) = try JSONValue(parsing: Self.body) else { return }
        for row in rows {
            let read = try FollowedRow(try JSONReader(row))
            #expect(read.formerTakenBy != nil)
            #expect(try FollowedRow(try JSONReader(.object(read.json))) == read)
        }
    }
}
